/**
 * Defines the domain of a VMI. Pure: the same instance, record and node always yield the same definition. The
 * definition has everything that the guest can see; files and processes belong to volumes/ and hypervisor/. All problems are returned
 * at once. They are permanent, because the spec of an instance does not change.
 */
import { CHIPSETS, chipsetOf } from '#api/devices/chipset.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { duplicateValue, type FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import { rowsFor, type KnownDevices } from '#api/devices/known-devices.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import { layoutOf } from '#node/definition/addresses/layouts.ts';
import { placeDevices } from '#node/definition/addresses/place-devices.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import { readSmbios } from '#api/identity/smbios-annotation.ts';
import { defineClock, defineMachine } from '#node/definition/machine.ts';
import { defineCpu } from '#node/definition/cpu.ts';
import { AGENT_CHANNEL_ID, defineAgentChannel } from '#node/definition/devices/agent-channel.ts';
import { defineNetwork, type NetworkFacts } from '#node/definition/devices/attachment.ts';
import { defineDisks, type Medium } from '#node/definition/devices/disk.ts';
import { defineFixtures, diskQueues } from '#node/definition/devices/fixtures.ts';
import { defineInterfaces, interfaceQueues, noteSingleQueues } from '#node/definition/devices/interface.ts';
import { defineOtherDevices } from '#node/definition/devices/other-devices.ts';
import {
  defineBalloon,
  defineRng,
  defineRootPorts,
  defineScsiController,
  defineSerial,
  defineTpm,
  defineVideo,
} from '#node/definition/devices/simple-devices.ts';
import type { Device, DiskDevice, DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { defineAcpi, defineFirmware, defineSmm, defineState } from '#node/definition/firmware.ts';
import { assignIoThreads } from '#node/definition/io-threads.ts';
import { defineKernel, type KernelFiles } from '#node/definition/kernel.ts';
import { defineMemoryKib } from '#node/definition/memory.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';

export interface DefineInput {
  readonly vmi: Stored<VirtualMachineInstance>;
  /** The devices of the last run of the VM, with their addresses. */
  readonly known: KnownDevices;
  readonly capabilities: Capabilities;
  /** Keyed by the name of the volume. */
  readonly volumes: ReadonlyMap<string, Medium>;
  /** The files of the image that kernelBoot names; undefined if there is no such image. */
  readonly kernel: KernelFiles | undefined;
  /** The directory of the persistent state; required if the spec asks for a persistent TPM or EFI variables. */
  readonly state?: DomainDefinition['state'];
  /** The networks of the instance on this node; undefined if guests have no network namespaces here. */
  readonly network?: NetworkFacts | undefined;
}

export type DefineResult = {
  /** Sentences for users about recorded devices that the guest does not get unchanged. */
  readonly notes: readonly string[];
  /** Sentences for users about requests of the spec that this node cannot satisfy. */
  readonly omitted: readonly string[];
} & (
  | { readonly definition: DomainDefinition; readonly problems?: undefined }
  | { readonly problems: readonly FieldError[]; readonly definition?: undefined }
);

export function defineDomain(input: DefineInput): DefineResult {
  const { vmi, known, capabilities, volumes, kernel, state, network } = input;
  const problems: FieldError[] = [];
  const notes: string[] = [];
  const omitted: string[] = [];
  const { metadata, spec } = vmi;
  const { domain } = spec;
  const machine = defineMachine(domain, capabilities, problems);
  // The name of a machine type that this node does not have may still reveal the chipset.
  const namedChipset = chipsetOf(machine?.name ?? domain.machine?.type);
  const chipset = namedChipset ?? 'q35';
  const firmware = defineFirmware(domain, metadata.uid, readSmbios(metadata.annotations));
  const kernelBoot = defineKernel(domain, kernel, problems);
  const persistentState = defineState(domain, state, problems);
  const define = (layout: Layout, deviceProblems: FieldError[], deviceNotes: string[]) =>
    defineDevices({ vmi, known, volumes, network, layout }, deviceProblems, deviceNotes);
  if (namedChipset === undefined) problems.push(...findCommonProblems((layout, found) => define(layout, found, [])));
  const devices = define(layoutOf(chipset), namedChipset === undefined ? [] : problems, notes);
  const withThreads = assignIoThreads(domain, devices);
  const clock = defineClock(domain);
  omitted.push(...noteSingleQueues(spec, devices));
  const definition: DomainDefinition = {
    id: metadata.uid,
    name: `${metadata.namespace ?? ''}/${metadata.name}`,
    machine: machine?.name ?? '',
    cpu: defineCpu(domain, capabilities, machine, problems, omitted),
    memoryKib: defineMemoryKib(domain, capabilities, problems),
    firmware,
    ...(kernelBoot !== undefined && { kernel: kernelBoot }),
    ...(clock !== undefined && { clock }),
    ...(withThreads.ioThreads !== undefined && { ioThreads: withThreads.ioThreads }),
    acpi: defineAcpi(domain),
    smm: defineSmm(domain, firmware, chipset, namedChipset === undefined ? [] : problems),
    devices: withThreads.devices,
    ...(persistentState !== undefined && { state: persistentState }),
    ...(network !== undefined && { network: defineNetwork(vmi, network) }),
  };
  return problems.length === 0 ? { definition, notes, omitted } : { problems, notes, omitted };
}

/**
 * Returns the problems that the devices have on every chipset. Used if the chipset is unknown, where others may not
 * apply.
 */
function findCommonProblems(define: (layout: Layout, problems: FieldError[]) => unknown): FieldError[] {
  const [found = [], ...others] = CHIPSETS.map((chipset) => {
    const problems: FieldError[] = [];
    define(layoutOf(chipset), problems);
    return problems;
  });
  return found.filter((one) => others.every((list) => list.some((other) => deepEqual(one, other))));
}

interface DevicesInput extends Pick<DefineInput, 'vmi' | 'known' | 'volumes' | 'network'> {
  readonly layout: Layout;
}

function defineDevices(
  { vmi, known, volumes, network, layout }: DevicesInput,
  problems: FieldError[],
  notes: string[],
): Device[] {
  const { spec } = vmi;
  const devices = spec.domain.devices ?? {};
  const rows = rowsFor(known, layout.chipset);
  const { complete = false } = known;
  const interfaces = defineInterfaces(
    spec,
    { ownerUid: ownerUidOf(vmi), layout, queues: interfaceQueues(spec), network },
    problems,
  );
  const disks = defineDisks(spec, volumes, layout, problems);
  const specDevices = [
    ...assignBootOrder([...interfaces, ...disks], problems),
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
  const recorded = defineOtherDevices(rows, new Set([AGENT_CHANNEL_ID, ...specDevices.map(({ device }) => device.id)]));
  notes.push(...recorded.notes);
  const { imported = false } = known;
  const agent = defineAgentChannel(vmi, { rows, others: recorded.devices, imported, complete });
  const others = [...recorded.devices, ...agent.controllers];
  const placement = placeDevices(
    [...specDevices, ...others],
    { layout, rows, reserved: specPciAddresses(spec) },
    problems,
  );
  const placed = new Map(placement.devices.map((device) => [device.id, device]));
  const devicesInOrder = [...specDevices, ...others].map(({ device }) => placed.get(device.id) ?? device);
  const ofTypes = (...types: Device['type'][]) => devicesInOrder.filter(({ type }) => types.includes(type));
  return [
    ...defineRootPorts(placement.ports),
    ...ofTypes('scsi-controller', 'usb-controller'),
    ...ofTypes('interface', 'disk'),
    ...defineTpm(devices),
    ...ofTypes('rng', 'balloon'),
    ...defineSerial(devices),
    ...ofTypes('video', 'watchdog', 'sound', 'input', 'redirection', 'other'),
    ...agent.channels,
  ];
}

/** Returns the uid from which MAC addresses are derived: that of the VM, or of an instance without a VM. */
export function ownerUidOf({ metadata }: Stored<VirtualMachineInstance>): string {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? metadata.uid;
}

/** Returns every PCI address that the spec names, also of devices that are not plugged. */
export function specPciAddresses({ domain }: VmiSpec): string[] {
  const { disks = [], interfaces = [] } = domain.devices ?? {};
  return [
    ...interfaces.flatMap(({ pciAddress }) => pciAddress ?? []),
    ...disks.flatMap(({ disk }) => disk?.pciAddress ?? []),
  ];
}

/**
 * Assigns boot orders as in KubeVirt: only devices with an order boot; if none has one, the disks in the order of the
 * spec. A floppy boots only if the spec says so.
 */
function assignBootOrder(
  unplaced: readonly UnplacedDevice<DiskDevice | InterfaceDevice>[],
  problems: FieldError[],
): readonly UnplacedDevice<DiskDevice | InterfaceDevice>[] {
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
