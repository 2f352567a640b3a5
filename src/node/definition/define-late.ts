/**
 * One disk or interface of a VMI as it is plugged into its running guest: what the spec says of it, at an address that the
 * guest has. Pure. Boot order is left to the next start: two devices may not share one, and this one boots nothing now.
 */
import { interfacesOf, networksOf } from '#api/attached-interfaces.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import type { KnownDevices } from '#node/definition/addresses/known-devices.ts';
import { layoutOfDomain, placeLate, type LatePlacement } from '#node/definition/addresses/place-late.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import { namedAddresses, ownerUidOf } from '#node/definition/define-domain.ts';
import { defineDisk, type Medium } from '#node/definition/devices/disk.ts';
import { diskQueues } from '#node/definition/devices/fixtures.ts';
import { defineInterface, interfaceQueues, whyNoRoom } from '#node/definition/devices/interface.ts';
import type { DomainDefinition, PluggableDevice } from '#node/definition/domain-definition.ts';

export interface LateInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** Of the disk or the interface in the spec. */
  readonly name: string;
  /** The guest as it is now. */
  readonly current: DomainDefinition;
  readonly known: KnownDevices;
}

export function defineLateDisk(input: LateInput & { readonly medium: Medium }): LatePlacement {
  const { vmi, name, medium, current } = input;
  const disks = vmi.spec.domain.devices?.disks ?? [];
  const index = disks.findIndex((disk) => disk.name === name);
  const disk = disks[index];
  if (disk === undefined) return { problem: `there is no disk "${name}" in the spec` };
  const problems: FieldError[] = [];
  const field = `spec.domain.devices.disks[${index}]`;
  const context = { layout: layoutOfDomain(current), queues: diskQueues(vmi.spec.domain) };
  return place(defineDisk(disk, field, medium, context, problems), input, problems);
}

export function defineLateInterface(input: LateInput): LatePlacement {
  const { vmi, name, current } = input;
  const interfaces = interfacesOf(vmi.spec);
  const index = interfaces.findIndex((item) => item.name === name);
  const item = interfaces[index];
  if (item === undefined) return { problem: `there is no interface "${name}" in the spec` };
  const problems: FieldError[] = [];
  const context = { ownerUid: ownerUidOf(vmi), layout: layoutOfDomain(current), queues: interfaceQueues(vmi.spec) };
  const field = `spec.domain.devices.interfaces[${index}]`;
  const unplaced = defineInterface(item, field, networksOf(vmi.spec), context, problems);
  const full = whyNoRoom(unplaced.device, current);
  if (full !== undefined) return { problem: `${field}.model: ${full}` };
  return place(unplaced, input, problems);
}

function place(
  { device, ...rest }: Unplaced<PluggableDevice>,
  { vmi, current, known }: LateInput,
  problems: readonly FieldError[],
): LatePlacement {
  if (problems.length > 0) return { problem: problems.map(({ field, message }) => `${field}: ${message}`).join(', ') };
  const { bootOrder: _next, ...late } = device;
  return placeLate({ ...rest, device: late }, current, known, namedAddresses(vmi.spec));
}
