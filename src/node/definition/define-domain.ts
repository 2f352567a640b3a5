/**
 * From a VMI to the guest that a hypervisor is to run. Pure: the same instance, record and node give the same guest.
 * It decides everything that the guest can see; files and processes are others' business. All problems are found at
 * once; they are permanent, as the spec of an instance does not change.
 */
import { CHIPSETS, chipsetOf } from '#api/chipset.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { duplicateValue, type FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import { rowsFor, type KnownDevices } from '#node/definition/addresses/known-devices.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import { layoutOf } from '#node/definition/addresses/layouts.ts';
import { placeDevices } from '#node/definition/addresses/place-devices.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import { readSmbios } from '#api/smbios-annotation.ts';
import { defineClock } from '#node/definition/clock.ts';
import { defineCpu } from '#node/definition/cpu.ts';
import { AGENT_CHANNEL_ID, defineAgentChannel } from '#node/definition/devices/agent-channel.ts';
import { defineBalloon } from '#node/definition/devices/balloon.ts';
import { defineDisks, type Medium } from '#node/definition/devices/disk.ts';
import { defineFixtures, diskQueues } from '#node/definition/devices/fixtures.ts';
import { defineInterfaces, interfaceQueues, leftQueues } from '#node/definition/devices/interface.ts';
import { defineOthers } from '#node/definition/devices/others.ts';
import { defineRng } from '#node/definition/devices/rng.ts';
import { defineRootPorts } from '#node/definition/devices/root-ports.ts';
import { defineScsiController } from '#node/definition/devices/scsi-controller.ts';
import { defineSerial } from '#node/definition/devices/serial.ts';
import { defineVideo } from '#node/definition/devices/video.ts';
import { defineTpm } from '#node/definition/devices/tpm.ts';
import type { Device, DiskDevice, DomainDefinition, InterfaceDevice } from '#node/definition/domain-definition.ts';
import { defineAcpi, defineFirmware, defineSmm } from '#node/definition/firmware.ts';
import { giveIoThreads } from '#node/definition/io-threads.ts';
import { defineKernel, type KernelFiles } from '#node/definition/kernel.ts';
import { defineMachine } from '#node/definition/machine.ts';
import { defineMemoryKib } from '#node/definition/memory.ts';
import { defineState } from '#node/definition/state.ts';
import type { Capabilities } from '#node/hypervisor/hypervisor.ts';

export interface DefineInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** Where its devices stood when the VM ran last. */
  readonly known: KnownDevices;
  readonly capabilities: Capabilities;
  /** By the name of the volume. */
  readonly volumes: ReadonlyMap<string, Medium>;
  /** The files of the image that kernelBoot names; undefined where there is no such image. */
  readonly kernel: KernelFiles | undefined;
  /** Where what outlives the guest is kept; a guest of which something does needs it. */
  readonly state?: DomainDefinition['state'];
}

export type DefineResult = {
  /** What the guest does not have as the record has it: sentences for people. */
  readonly notes: readonly string[];
  /** What the spec asks for and this node cannot do: sentences for people. */
  readonly left: readonly string[];
} & (
  | { readonly definition: DomainDefinition; readonly problems?: undefined }
  | { readonly problems: readonly FieldError[]; readonly definition?: undefined }
);

export function defineDomain({ vmi, known, capabilities, volumes, kernel, state }: DefineInput): DefineResult {
  const problems: FieldError[] = [];
  const notes: string[] = [];
  const left: string[] = [];
  const { metadata, spec } = vmi;
  const { domain } = spec;
  const machine = defineMachine(domain, capabilities, problems);
  // The name of a type that this node does not have may still say which chipset it is of.
  const namedChipset = chipsetOf(machine?.name ?? domain.machine?.type);
  const chipset = namedChipset ?? 'q35';
  const firmware = defineFirmware(domain, metadata.uid, readSmbios(metadata.annotations));
  const kernelBoot = defineKernel(domain, kernel, problems);
  const kept = defineState(domain, state, problems);
  const define = (layout: Layout, into: FieldError[], said: string[]) =>
    defineDevices({ vmi, known, volumes, layout }, into, said);
  if (namedChipset === undefined) problems.push(...problemsOfAny((layout, found) => define(layout, found, [])));
  const devices = define(layoutOf(chipset), namedChipset === undefined ? [] : problems, notes);
  const threaded = giveIoThreads(domain, devices);
  const clock = defineClock(domain);
  left.push(...leftQueues(spec, devices));
  const definition: DomainDefinition = {
    id: metadata.uid,
    name: `${metadata.namespace ?? ''}/${metadata.name}`,
    machine: machine?.name ?? '',
    cpu: defineCpu(domain, capabilities, machine, problems, left),
    memoryKib: defineMemoryKib(domain, capabilities, problems),
    firmware,
    ...(kernelBoot !== undefined && { kernel: kernelBoot }),
    ...(clock !== undefined && { clock }),
    ...(threaded.ioThreads !== undefined && { ioThreads: threaded.ioThreads }),
    acpi: defineAcpi(domain),
    smm: defineSmm(domain, firmware, chipset, namedChipset === undefined ? [] : problems),
    devices: threaded.devices,
    ...(kept !== undefined && { state: kept }),
  };
  return problems.length === 0 ? { definition, notes, left } : { problems, notes, left };
}

/** Returns the problems that the devices have on every chipset: where nobody knows which it is, others may be none. */
function problemsOfAny(define: (layout: Layout, problems: FieldError[]) => unknown): FieldError[] {
  const [found = [], ...others] = CHIPSETS.map((chipset) => {
    const problems: FieldError[] = [];
    define(layoutOf(chipset), problems);
    return problems;
  });
  return found.filter((one) => others.every((list) => list.some((other) => deepEqual(one, other))));
}

interface DevicesInput extends Pick<DefineInput, 'vmi' | 'known' | 'volumes'> {
  readonly layout: Layout;
}

function defineDevices(
  { vmi, known, volumes, layout }: DevicesInput,
  problems: FieldError[],
  notes: string[],
): Device[] {
  const { spec } = vmi;
  const devices = spec.domain.devices ?? {};
  const rows = rowsFor(known, layout.chipset);
  const { complete = false } = known;
  const interfaces = defineInterfaces(
    spec,
    { ownerUid: ownerUidOf(vmi), layout, queues: interfaceQueues(spec) },
    problems,
  );
  const disks = defineDisks(spec, volumes, layout, problems);
  const own = [
    ...inBootOrder([...interfaces, ...disks], problems),
    ...defineScsiController(
      disks.map(({ device }) => device),
      { rows, complete },
      diskQueues(spec.domain),
    ),
    ...defineRng(devices),
    ...defineBalloon(devices),
    ...defineVideo(devices, rows),
    ...defineFixtures(devices, rows, problems),
  ];
  const recorded = defineOthers(rows, new Set([AGENT_CHANNEL_ID, ...own.map(({ device }) => device.id)]));
  notes.push(...recorded.notes);
  const { imported = false } = known;
  const agent = defineAgentChannel(vmi, { rows, others: recorded.devices, imported, complete });
  const others = [...recorded.devices, ...agent.controllers];
  const placement = placeDevices([...own, ...others], { layout, rows, reserved: namedAddresses(spec) }, problems);
  const placed = new Map(placement.devices.map((device) => [device.id, device]));
  const standing = [...own, ...others].map(({ device }) => placed.get(device.id) ?? device);
  const only = (...types: Device['type'][]) => standing.filter(({ type }) => types.includes(type));
  return [
    ...defineRootPorts(placement.ports),
    ...only('scsi-controller', 'usb-controller'),
    ...only('interface', 'disk'),
    ...defineTpm(devices),
    ...only('rng', 'balloon'),
    ...defineSerial(devices),
    ...only('video', 'watchdog', 'sound', 'input', 'redirection', 'other'),
    ...agent.channels,
  ];
}

/** What made-up MAC addresses are derived from: the VM, or an instance that has none. */
export function ownerUidOf({ metadata }: Stored<VirtualMachineInstance>): string {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? metadata.uid;
}

/** Every PCI address that the spec names, also for what is not in the guest now. */
export function namedAddresses({ domain }: VmiSpec): string[] {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  return [
    ...interfaces.flatMap(({ pciAddress }) => pciAddress ?? []),
    ...disks.flatMap(({ disk }) => disk?.pciAddress ?? []),
  ];
}

/**
 * As in KubeVirt: only what has an order is booted from; where nothing has one, the disks in the order of the spec. A
 * floppy is booted from only where the spec says so.
 */
function inBootOrder(
  unplaced: readonly Unplaced<DiskDevice | InterfaceDevice>[],
  problems: FieldError[],
): readonly Unplaced<DiskDevice | InterfaceDevice>[] {
  const seen = new Set<number>();
  for (const { device, field } of unplaced) {
    if (device.bootOrder === undefined) continue;
    if (seen.has(device.bootOrder)) problems.push(duplicateValue(`${field}.bootOrder`, device.bootOrder));
    seen.add(device.bootOrder);
  }
  if (seen.size > 0) return unplaced;
  let next = 1;
  return unplaced.map((item) =>
    item.device.type === 'disk' && item.device.media !== 'floppy'
      ? { ...item, device: { ...item.device, bootOrder: next++ } }
      : item,
  );
}
