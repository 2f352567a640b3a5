/** A VM of ours as a description: its spec, what its record knows of addresses, and how large its claims are. Pure. */
import { needsState } from '#api/persistent-state.ts';
import { allowsVideo, asksForVideo, fixedDevices, VIDEO_ID } from '#api/fixtures.ts';
import { interfacesOf, networksOf } from '#api/attached-interfaces.ts';
import { chipsetOf } from '#api/chipset.ts';
import { derivedMac } from '#api/derived-mac.ts';
import { topologyOf } from '#api/domain/cpu.ts';
import type { Domain } from '#api/domain/domain.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { tidyRow } from '#formats/device-rows.ts';
import { Findings } from '#formats/faults.ts';
import type {
  DescribedDisk,
  DescribedNic,
  DescribedState,
  FirmwareKind,
  MachineDescription,
} from '#formats/machine.ts';
import { describeDisk } from '#formats/vm/describe-disk.ts';
import { effectiveBootOrder } from '#formats/vm/effective-boot-order.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { parseQuantity, quantityFault, quantityToNumber } from '#kube/quantity.ts';

const MIB = 1024 ** 2;
/** Parts of a spec that are written, or say nothing of the machine. */
const TAKEN = new Set([
  'domain',
  'volumes',
  'networks',
  'architecture',
  'terminationGracePeriodSeconds',
  'startStrategy',
]);

/** `record`: of this VM; undefined where it never ran. `claims`: of its namespace, at least those that it uses. */
export function describeVm(
  vm: VirtualMachine,
  record: VirtualMachineIdentity | undefined,
  claims: Iterable<PersistentVolumeClaim>,
): MachineDescription {
  const findings = new Findings();
  const spec = vm.spec.template.spec ?? { domain: {} };
  const { domain } = spec;
  const firmware = domain.firmware ?? {};
  const machineType = record?.status?.machine?.type ?? domain.machine?.type ?? undefined;
  const chipset = chipsetOf(machineType);
  const byName = new Map([...claims].map((claim) => [claim.metadata.name ?? '', claim]));
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const known = record?.status?.devices ?? [];
  const { disks, nics, ...boot } = effectiveBootOrder(
    (domain.devices?.disks ?? []).map((disk) => describeDisk(disk, volumes.get(disk.name), byName, chipset, findings)),
    describeNics(spec, vm, record),
    known,
  );
  const rows = rowsOf(domain, disks, nics, known);
  const uuid = firmware.uuid ?? record?.spec.firmware?.uuid;
  const serial = firmware.serial ?? record?.spec.firmware?.serial;
  noteLeft(spec, findings);
  noteUnseen(domain, record, findings);
  return {
    name: vm.metadata.name ?? '',
    ...(uuid !== undefined && uuid !== '' && { uuid }),
    ...(serial !== undefined && serial !== '' && { serial }),
    ...(machineType !== undefined && machineType !== '' && { machineType }),
    ...(chipset !== undefined && { chipset }),
    cpu: { ...topologyOf(domain), ...(domain.cpu?.model !== undefined && { model: domain.cpu.model }) },
    memoryMib: memoryOf(domain),
    firmware: firmwareOf(domain),
    tpm: wantsTpm(domain),
    ...(needsState(spec) && { state: stateOf(domain) }),
    disks,
    nics,
    ...boot,
    rows,
    source: { format: 'vm', product: 'Selfsame' },
    notes: findings.notes,
  };
}

function memoryOf({ memory, resources }: Domain): number {
  const asked = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  if (asked === undefined || quantityFault(asked) !== undefined) return 0;
  return Math.floor(quantityToNumber(parseQuantity(String(asked))) / MIB);
}

function firmwareOf({ firmware }: Domain): FirmwareKind {
  const efi = firmware?.bootloader?.efi;
  if (efi === undefined) return 'bios';
  return efi.secureBoot === false ? 'efi' : 'efi-secure';
}

function wantsTpm({ devices }: Domain): boolean {
  return devices?.tpm !== undefined && devices.tpm.enabled !== false;
}

function stateOf(domain: Domain): DescribedState {
  const tpm = wantsTpm(domain) && domain.devices?.tpm?.persistent === true;
  return { tpm, efi: domain.firmware?.bootloader?.efi?.persistent === true };
}

function describeNics(spec: VmiSpec, vm: VirtualMachine, record: VirtualMachineIdentity | undefined): DescribedNic[] {
  const networks = new Map(networksOf(spec).map((network) => [network.name, network]));
  const made = (record?.spec.interfaces ?? []).filter(({ fromTemplate }) => fromTemplate !== true);
  const kept = new Map(made.map(({ name, macAddress }) => [name, macAddress]));
  return interfacesOf(spec).map(({ name, model, macAddress, bootOrder, state }) => {
    const derived = vm.metadata.uid === undefined ? undefined : derivedMac(vm.metadata.uid, name);
    const mac = (macAddress || kept.get(name)) ?? derived;
    return {
      id: `nic-${name}`,
      name,
      model: model ?? 'virtio',
      ...(mac !== undefined && { mac: mac.toLowerCase().replaceAll('-', ':') }),
      network: networks.get(name)?.multus?.networkName ?? 'pod',
      ...(bootOrder !== undefined && { bootOrder }),
      plugged: state !== 'absent',
    };
  });
}

/** What the spec wants, with the addresses of the record; and what came with the machine. */
function rowsOf(
  domain: Domain,
  disks: readonly DescribedDisk[],
  nics: readonly DescribedNic[],
  known: readonly LearnedDevice[],
): LearnedDevice[] {
  const byId = new Map(known.map((row) => [row.id, row]));
  const kept = (id: string) => ({ address: byId.get(id)?.address, specParams: byId.get(id)?.specParams });
  const wanted: LearnedDevice[] = [
    ...nics.map(({ id, name, model, bootOrder, plugged }) => ({
      id,
      type: 'interface',
      device: model,
      name,
      bootOrder,
      plugged,
      managed: true,
      ...kept(id),
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
      ...kept(id),
    })),
  ];
  const singles = singlesOf(domain, byId);
  const always = singles.filter(({ isWanted }) => isWanted).map(({ row }) => byId.get(row.id) ?? row);
  const own = new Set([...wanted, ...singles.map(({ row }) => row)].map(({ id }) => id));
  const others = known.filter(({ id, type }) => !own.has(id) && type !== 'disk' && type !== 'interface');
  return [...wanted, ...always, ...others].map(tidyRow);
}

/** Of most of these a guest has one or none; their ids are node/definition's. */
function singlesOf(
  domain: Domain,
  known: ReadonlyMap<string, LearnedDevice>,
): { isWanted: boolean; row: LearnedDevice }[] {
  const { devices = {} } = domain;
  const { rng, autoattachMemBalloon, autoattachSerialConsole, video } = devices;
  // One that never ran will have a card unless that is refused.
  const hasVideo = allowsVideo(devices) && (asksForVideo(devices) || known.size === 0 || known.has(VIDEO_ID));
  return [
    ...fixedDevices(devices).map((row) => ({ isWanted: true, row: { ...row, managed: true } })),
    { isWanted: hasVideo, row: { id: VIDEO_ID, type: 'video', device: video?.type ?? 'vga', managed: true } },
    { isWanted: wantsTpm(domain), row: { id: 'tpm0', type: 'tpm', device: 'crb', managed: true } },
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

/** What a guest sees of itself, and would see differently where the file is imported. */
function noteUnseen(
  { chassis, clock, cpu, features = {} }: Domain,
  record: VirtualMachineIdentity | undefined,
  findings: Findings,
): void {
  const { hyperv, hypervPassthrough, kvm, pvspinlock } = features;
  const parts = {
    ...{ chassis, clock, 'cpu.features': cpu?.features },
    ...{ 'features.hyperv': hyperv ?? hypervPassthrough, 'features.kvm': kvm, 'features.pvspinlock': pvspinlock },
    'the SMBIOS strings of its maker': record?.spec.smbios,
  };
  const left = Object.entries(parts).flatMap(([name, part]) => (part === undefined ? [] : [name]));
  if (left.length > 0) findings.note(`what the guest sees of itself and is not written: ${left.join(', ')}`);
}

function noteLeft(spec: VmiSpec, findings: Findings): void {
  const left = Object.keys(spec).filter((key) => !TAKEN.has(key));
  if (left.length > 0) findings.note(`parts of the VM without a place in the file: ${left.join(', ')}`);
  if (spec.domain.firmware?.kernelBoot !== undefined)
    findings.note('kernelBoot is not written: the machine boots from its disks');
  if (spec.domain.features?.acpi?.enabled === false) findings.note('that ACPI is off is not written');
}
