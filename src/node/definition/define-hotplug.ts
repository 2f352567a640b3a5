/**
 * Defines a disk or interface of a VMI that is hotplugged: as the spec describes it, at a free address of the running
 * guest. Pure. The boot order is omitted: it has no effect before the next start, and two devices may not share one.
 */
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import type { KnownDevices } from '#api/devices/known-devices.ts';
import { layoutOfDomain, placeHotplugged, type HotplugPlacement } from '#node/definition/addresses/place-hotplugged.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import { specPciAddresses, ownerUidOf } from '#node/definition/define-domain.ts';
import type { NetworkFacts } from '#node/definition/devices/attachment.ts';
import { defineDisk, type Medium } from '#node/definition/devices/disk.ts';
import { diskQueues } from '#node/definition/devices/fixtures.ts';
import { defineInterface, interfaceQueues, checkInterfaceRoom } from '#node/definition/devices/interface.ts';
import type { DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';

interface HotplugInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** The name of the disk or interface in the spec. */
  readonly name: string;
  /** The current definition of the running guest. */
  readonly current: DomainDefinition;
  readonly known: KnownDevices;
  /** The networks of the instance; undefined if the guest has no network namespace. */
  readonly network?: NetworkFacts | undefined;
}

export function defineHotplugDisk(input: HotplugInput & { readonly medium: Medium }): HotplugPlacement {
  const { vmi, name, medium, current } = input;
  const disks = vmi.spec.domain.devices?.disks ?? [];
  const index = disks.findIndex((disk) => disk.name === name);
  const disk = disks[index];
  if (disk === undefined) return { problem: `the spec has no disk "${name}"` };
  const problems: FieldError[] = [];
  const field = `spec.domain.devices.disks[${index}]`;
  const context = { layout: layoutOfDomain(current), queues: diskQueues(vmi.spec.domain) };
  return placeDefined(defineDisk(disk, field, medium, context, problems), input, problems);
}

export function defineHotplugInterface(input: HotplugInput): HotplugPlacement {
  const { vmi, name, current } = input;
  const interfaces = interfacesOf(vmi.spec);
  const index = interfaces.findIndex((item) => item.name === name);
  const item = interfaces[index];
  if (item === undefined) return { problem: `the spec has no interface "${name}"` };
  const problems: FieldError[] = [];
  const context = {
    ownerUid: ownerUidOf(vmi),
    layout: layoutOfDomain(current),
    queues: interfaceQueues(vmi.spec),
    // A guest of an earlier version runs in the namespace of the host.
    network: current.network === undefined ? undefined : input.network,
  };
  const field = `spec.domain.devices.interfaces[${index}]`;
  const unplaced = defineInterface(item, field, networksOf(vmi.spec), context, problems);
  const full = checkInterfaceRoom(unplaced.device, current);
  if (full !== undefined) return { problem: `${field}.model: ${full}` };
  return placeDefined(unplaced, input, problems);
}

function placeDefined(
  { device, ...rest }: UnplacedDevice<PluggableDevice>,
  { vmi, current, known }: HotplugInput,
  problems: readonly FieldError[],
): HotplugPlacement {
  if (problems.length > 0) return { problem: problems.map(({ field, message }) => `${field}: ${message}`).join(', ') };
  const { bootOrder: _next, ...hotplugged } = device;
  return placeHotplugged({ ...rest, device: hotplugged }, current, known, specPciAddresses(vmi.spec));
}
