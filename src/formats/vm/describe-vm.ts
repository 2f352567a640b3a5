/** Describes a VM from its spec, the addresses in its record and the sizes of its claims. Pure. */
import { needsState } from '#api/storage/persistent-state.ts';
import { allowsVideo, asksForVideo, listFixedDevices, VIDEO_ID } from '#api/devices/fixed-devices.ts';
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import { chipsetOf } from '#api/devices/chipset.ts';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { topologyOf } from '#api/domain/cpu.ts';
import type { Network } from '#api/domain/interface.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { compactRow } from '#formats/device-rows.ts';
import { Findings } from '#formats/findings.ts';
import type {
  DescribedDisk,
  DescribedNic,
  DescribedState,
  FirmwareKind,
  MachineDescription,
} from '#formats/machine.ts';
import { describeDisk } from '#formats/vm/describe-disk.ts';
import { findEffectiveBootOrder } from '#formats/vm/effective-boot-order.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { parseQuantity, findQuantityError, quantityToNumber } from '#kube/quantity.ts';
import { normalizeMac } from '#api/identity/normalize-mac.ts';

const MIB = 1024 ** 2;
/** Fields of a spec that are written, or that do not affect the machine. */
const EXPORTED_FIELDS = new Set([
  'domain',
  'volumes',
  'networks',
  'architecture',
  'terminationGracePeriodSeconds',
  'startStrategy',
  'hostname',
]);

/** Describes the VM. `record` is undefined if the VM never ran. `claims` contains at least those that the VM uses. */
export function describeVm(
  vm: VirtualMachine,
  record: VirtualMachineIdentity | undefined,
  claims: Iterable<PersistentVolumeClaim>,
): MachineDescription {
  const findings = new Findings();
  const spec = vm.spec.template.spec ?? { domain: {} };
  const { domain } = spec;
  const templateLabels = vm.spec.template.metadata?.labels;
  const firmware = domain.firmware ?? {};
  const machineType = record?.status?.machine?.type ?? domain.machine?.type ?? undefined;
  const chipset = chipsetOf(machineType);
  const byName = new Map([...claims].map((claim) => [claim.metadata.name ?? '', claim]));
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const known = record?.status?.devices ?? [];
  const { disks, nics, ...boot } = findEffectiveBootOrder(
    (domain.devices?.disks ?? []).map((disk) => describeDisk(disk, volumes.get(disk.name), byName, chipset, findings)),
    describeNics(spec, vm, record),
    known,
  );
  const rows = buildRows(domain, disks, nics, known);
  const uuid = firmware.uuid ?? record?.spec.firmware?.uuid;
  const serial = firmware.serial ?? record?.spec.firmware?.serial;
  noteOmittedFields(spec, findings);
  noteOmittedHardware(domain, record, findings);
  return {
    name: vm.metadata.name ?? '',
    ...(uuid !== undefined && uuid !== '' && { uuid }),
    ...(serial !== undefined && serial !== '' && { serial }),
    ...(machineType !== undefined && machineType !== '' && { machineType }),
    ...(chipset !== undefined && { chipset }),
    cpu: { ...topologyOf(domain), ...(domain.cpu?.model !== undefined && { model: domain.cpu.model }) },
    memoryMib: memoryOf(domain),
    firmware: firmwareOf(domain),
    tpm: hasTpm(domain),
    ...(needsState(spec) && { state: stateOf(domain) }),
    disks,
    nics,
    ...boot,
    ...(spec.hostname !== undefined && spec.hostname !== '' && { hostname: spec.hostname }),
    ...(hasLabels(vm.metadata.labels) && { labels: { ...vm.metadata.labels } }),
    ...(hasLabels(templateLabels) && { templateLabels: { ...templateLabels } }),
    rows,
    source: { format: 'vm', product: 'Selfsame' },
    notes: findings.notes,
  };
}

function hasLabels(labels: Readonly<Record<string, string>> | undefined): boolean {
  return labels !== undefined && Object.keys(labels).length > 0;
}

function memoryOf({ memory, resources }: DomainSpec): number {
  const requested = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  if (requested === undefined || findQuantityError(requested) !== undefined) return 0;
  return Math.floor(quantityToNumber(parseQuantity(String(requested))) / MIB);
}

function firmwareOf({ firmware }: DomainSpec): FirmwareKind {
  const efi = firmware?.bootloader?.efi;
  if (efi === undefined) return 'bios';
  return efi.secureBoot === false ? 'efi' : 'efi-secure';
}

function hasTpm({ devices }: DomainSpec): boolean {
  return devices?.tpm !== undefined && devices.tpm.enabled !== false;
}

function stateOf(domain: DomainSpec): DescribedState {
  const tpm = hasTpm(domain) && domain.devices?.tpm?.persistent === true;
  return { tpm, efi: domain.firmware?.bootloader?.efi?.persistent === true };
}

function describeNics(spec: VmiSpec, vm: VirtualMachine, record: VirtualMachineIdentity | undefined): DescribedNic[] {
  const networks = new Map(networksOf(spec).map((network) => [network.name, network]));
  const generated = (record?.spec.interfaces ?? []).filter(({ fromTemplate }) => fromTemplate !== true);
  const recordedMacs = new Map(generated.map(({ name, macAddress }) => [name, macAddress]));
  return interfacesOf(spec).map(({ name, model, macAddress, bootOrder, state }) => {
    const derived = vm.metadata.uid === undefined ? undefined : deriveMac(vm.metadata.uid, name);
    const mac = (macAddress || recordedMacs.get(name)) ?? derived;
    return {
      id: `nic-${name}`,
      name,
      model: model ?? 'virtio',
      ...(mac !== undefined && { mac: normalizeMac(mac) }),
      network: networkNameOf(networks.get(name)),
      ...(bootOrder !== undefined && { bootOrder }),
      plugged: state !== 'absent',
    };
  });
}

/** Returns the name of the definition without its namespace, which means nothing in another cluster or manager. */
function networkNameOf(network: Network | undefined): string {
  const { networkName } = network?.multus ?? {};
  return networkName?.split('/').at(-1) ?? 'pod';
}

/**
 * Builds the rows: the devices of the spec with their recorded addresses, and recorded devices that came with the
 * machine.
 */
function buildRows(
  domain: DomainSpec,
  disks: readonly DescribedDisk[],
  nics: readonly DescribedNic[],
  known: readonly LearnedDevice[],
): LearnedDevice[] {
  const byId = new Map(known.map((row) => [row.id, row]));
  const recordedFields = (id: string) => ({ address: byId.get(id)?.address, specParams: byId.get(id)?.specParams });
  const specRows: LearnedDevice[] = [
    ...nics.map(({ id, name, model, bootOrder, plugged }) => ({
      id,
      type: 'interface',
      device: model,
      name,
      bootOrder,
      plugged,
      managed: true,
      ...recordedFields(id),
    })),
    ...disks.map(({ id, name, media, bootOrder, plugged, readonly }) => ({
      id,
      type: 'disk',
      device: media,
      name,
      bootOrder,
      plugged,
      readonly,
      managed: true,
      ...recordedFields(id),
    })),
  ];
  const singles = singleDevices(domain, byId);
  const singleRows = singles.filter(({ isWanted }) => isWanted).map(({ row }) => byId.get(row.id) ?? row);
  const own = new Set([...specRows, ...singles.map(({ row }) => row)].map(({ id }) => id));
  const others = known.filter(({ id, type }) => !own.has(id) && type !== 'disk' && type !== 'interface');
  return [...specRows, ...singleRows, ...others].map(compactRow);
}

/** Returns the devices of which a guest usually has at most one, with the ids of node/definition. */
function singleDevices(
  domain: DomainSpec,
  known: ReadonlyMap<string, LearnedDevice>,
): { isWanted: boolean; row: LearnedDevice }[] {
  const { devices = {} } = domain;
  const { rng, autoattachMemBalloon, autoattachSerialConsole, video } = devices;
  // A VM that never ran will have a video card unless its spec disables it.
  const hasVideo = allowsVideo(devices) && (asksForVideo(devices) || known.size === 0 || known.has(VIDEO_ID));
  return [
    ...listFixedDevices(devices).map((row) => ({ isWanted: true, row: { ...row, managed: true } })),
    { isWanted: hasVideo, row: { id: VIDEO_ID, type: 'video', device: video?.type ?? 'vga', managed: true } },
    { isWanted: hasTpm(domain), row: { id: 'tpm0', type: 'tpm', device: 'crb', managed: true } },
    { isWanted: rng !== undefined, row: { id: 'rng0', type: 'rng', device: 'virtio', managed: true } },
    {
      isWanted: autoattachMemBalloon !== false,
      row: { id: 'balloon0', type: 'balloon', device: 'memballoon', managed: true },
    },
    {
      isWanted: autoattachSerialConsole !== false,
      row: { id: 'serial0', type: 'console', device: 'serial', managed: true },
    },
  ];
}

/** Adds a note about settings that the guest can see and that the file does not contain. */
function noteOmittedHardware(
  { chassis, clock, cpu, features = {} }: DomainSpec,
  record: VirtualMachineIdentity | undefined,
  findings: Findings,
): void {
  const { hyperv, hypervPassthrough, kvm, pvspinlock } = features;
  const parts = {
    ...{ chassis, clock, 'cpu.features': cpu?.features },
    ...{ 'features.hyperv': hyperv ?? hypervPassthrough, 'features.kvm': kvm, 'features.pvspinlock': pvspinlock },
    'the SMBIOS strings': record?.spec.smbios,
  };
  const omitted = Object.entries(parts).flatMap(([name, part]) => (part === undefined ? [] : [name]));
  if (omitted.length > 0)
    findings.addNote(`settings that the guest can see and that are not written: ${omitted.join(', ')}`);
}

function noteOmittedFields(spec: VmiSpec, findings: Findings): void {
  const omitted = Object.keys(spec).filter((key) => !EXPORTED_FIELDS.has(key));
  if (omitted.length > 0) findings.addNote(`fields of the VM that are not written: ${omitted.join(', ')}`);
  if (spec.domain.firmware?.kernelBoot !== undefined)
    findings.addNote('kernelBoot is not written: the machine boots from its disks');
  if (spec.domain.features?.acpi?.enabled === false) findings.addNote('the setting that disables ACPI is not written');
}
