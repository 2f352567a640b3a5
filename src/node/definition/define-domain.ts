/**
 * From a VMI to the guest that a hypervisor is to run. Pure: the same instance, record and node give the same guest.
 * It decides everything that the guest can see; files and processes are others' business. All problems are found at
 * once; they are permanent, as the spec of an instance does not change.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { duplicateValue, type FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import { placeDevices, type Unplaced } from '#node/definition/addresses/place-devices.ts';
import { defineCpu } from '#node/definition/cpu.ts';
import { defineBalloon } from '#node/definition/devices/balloon.ts';
import { defineDisks, type Medium } from '#node/definition/devices/disk.ts';
import { defineInterfaces } from '#node/definition/devices/interface.ts';
import { defineRng } from '#node/definition/devices/rng.ts';
import { defineRootPorts } from '#node/definition/devices/root-ports.ts';
import { defineScsiController } from '#node/definition/devices/scsi-controller.ts';
import { defineSerial } from '#node/definition/devices/serial.ts';
import { defineTpm } from '#node/definition/devices/tpm.ts';
import type { Device, DiskDevice, DomainDefinition, InterfaceDevice } from '#node/definition/domain-definition.ts';
import { defineAcpi, defineFirmware, defineSmm } from '#node/definition/firmware.ts';
import { defineKernel, type KernelFiles } from '#node/definition/kernel.ts';
import { defineMachine } from '#node/definition/machine.ts';
import { defineMemoryKib } from '#node/definition/memory.ts';
import type { Capabilities } from '#node/hypervisor/hypervisor.ts';

export interface DefineInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** The devices of the identity record: where they stood when the VM ran last. */
  readonly known: readonly LearnedDevice[];
  readonly capabilities: Capabilities;
  /** By the name of the volume. */
  readonly volumes: ReadonlyMap<string, Medium>;
  /** The files of the image that kernelBoot names; undefined where there is no such image. */
  readonly kernel: KernelFiles | undefined;
}

export type DefineResult =
  | { readonly definition: DomainDefinition; readonly problems?: undefined }
  | { readonly problems: readonly FieldError[]; readonly definition?: undefined };

export function defineDomain({ vmi, known, capabilities, volumes, kernel }: DefineInput): DefineResult {
  const problems: FieldError[] = [];
  const { metadata, spec } = vmi;
  const { domain } = spec;
  const machine = defineMachine(domain, capabilities, problems);
  const firmware = defineFirmware(domain, metadata.uid);
  const kernelBoot = defineKernel(domain, kernel, problems);
  const definition: DomainDefinition = {
    id: metadata.uid,
    name: `${metadata.namespace ?? ''}/${metadata.name}`,
    machine: machine?.name ?? '',
    cpu: defineCpu(domain, capabilities, machine, problems),
    memoryKib: defineMemoryKib(domain, capabilities, problems),
    firmware,
    ...(kernelBoot !== undefined && { kernel: kernelBoot }),
    acpi: defineAcpi(domain),
    smm: defineSmm(domain, firmware, problems),
    devices: defineDevices(vmi, known, volumes, problems),
  };
  return problems.length === 0 ? { definition } : { problems };
}

function defineDevices(
  { metadata, spec }: Stored<VirtualMachineInstance>,
  known: readonly LearnedDevice[],
  volumes: ReadonlyMap<string, Medium>,
  problems: FieldError[],
): Device[] {
  const devices = spec.domain.devices ?? {};
  const vmUid = metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
  const interfaces = defineInterfaces(spec, vmUid ?? metadata.uid, problems);
  const disks = defineDisks(spec, volumes, problems);
  const unplaced = inBootOrder([...interfaces, ...disks], problems);
  const placement = placeDevices(unplaced, known, problems);
  return [
    ...defineRootPorts(placement.ports),
    ...defineScsiController(
      disks.map(({ device }) => device),
      known,
    ),
    ...placement.devices,
    ...defineTpm(devices),
    ...defineRng(devices),
    ...defineBalloon(devices),
    ...defineSerial(devices),
  ];
}

/** As in KubeVirt: only what has an order is booted from; where nothing has one, the disks in the order of the spec. */
function inBootOrder(
  unplaced: readonly Unplaced<DiskDevice | InterfaceDevice>[],
  problems: FieldError[],
): readonly Unplaced[] {
  const seen = new Set<number>();
  for (const { device, field } of unplaced) {
    if (device.bootOrder === undefined) continue;
    if (seen.has(device.bootOrder)) problems.push(duplicateValue(`${field}.bootOrder`, device.bootOrder));
    seen.add(device.bootOrder);
  }
  if (seen.size > 0) return unplaced;
  let next = 1;
  return unplaced.map((item) =>
    item.device.type === 'disk' ? { ...item, device: { ...item.device, bootOrder: next++ } } : item,
  );
}
