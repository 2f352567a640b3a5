/**
 * Converts a VM of the host API to an instance, the input of define-domain.ts, so that all guests are defined in one
 * way. Validation errors of the instance are converted back to the keys that the caller sent. Pure.
 */
import { GUEST_IMAGE } from '#api/names.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import { pciAddressFromMap, formatAnyAddress } from '#api/devices/pci-address.ts';
import type { DefineInput } from '#node/definition/define-domain.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import type { DiskDevice, DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { KernelFiles } from '#node/definition/kernel.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sentAddressOf } from '#node/host-api/sent/device-fields.ts';
import { toDiskSpec, toInterfaceSpec, entryName } from '#node/host-api/definition/entry-spec.ts';
import { isBlank, isBlankOrOneOf } from '#node/host-api/sent/key-rules.ts';
import { placeAsLibvirt } from '#node/host-api/definition/place-as-libvirt.ts';
import type { SentVm } from '#node/host-api/sent/sent-vm.ts';
import type { VmConf } from '#node/host-api/sent/vm-conf.ts';

interface HostVmInput {
  readonly conf: VmConf;
  readonly entries: readonly DeviceEntry[];
  /** Keyed by our id of the disk. */
  readonly media: ReadonlyMap<string, Medium>;
  readonly kernel: KernelFiles | undefined;
}

interface HostDefineInput extends Omit<DefineInput, 'capabilities'> {
  /** Notes about devices that cannot have the address that libvirt gave them. */
  readonly placeNotes: readonly string[];
}

export function buildDefineInput(vm: HostVmInput): HostDefineInput {
  const { conf, entries, media, kernel } = vm;
  const disks = entriesOfType(entries, 'disk');
  const placed = placeAsLibvirt(entries, { machine: conf.machine, vmchannel: conf.vmchannel });
  return {
    vmi: buildInstance(vm),
    known: { devices: placed.rows, imported: true, complete: true },
    placeNotes: placed.notes,
    volumes: new Map(
      disks.flatMap((entry) => {
        const medium = media.get(entry.id);
        return medium === undefined ? [] : [[entryName(entry), medium] as const];
      }),
    ),
    kernel,
  };
}

function buildInstance({ conf, entries, media, kernel }: HostVmInput): Stored<VirtualMachineInstance> {
  const disks = entriesOfType(entries, 'disk').map((entry) => ({ entry, disk: toDiskSpec(entry) }));
  const cards = entriesOfType(entries, 'interface').map(toInterfaceSpec);
  const has = (type: string) => entriesOfType(entries, type).length > 0;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    // Without a namespace, the name cannot be that of an instance of the API.
    metadata: { name: conf.vmName, uid: conf.vmId, resourceVersion: '', creationTimestamp: '' },
    spec: {
      domain: {
        cpu: conf.cpu,
        memory: { guest: `${conf.memoryMib}Mi` },
        machine: { type: conf.machine },
        firmware: {
          uuid: conf.uuid,
          ...(conf.serial !== undefined && { serial: conf.serial }),
          ...(kernel === undefined
            ? {}
            : { kernelBoot: { container: { image: GUEST_IMAGE }, kernelArgs: conf.kernelArgs } }),
        },
        ...(conf.clock !== undefined && { clock: conf.clock }),
        features: { acpi: { enabled: conf.acpi } },
        devices: {
          disks: disks.map(({ disk }) => disk),
          interfaces: cards.map(({ item }) => item),
          ...(has('tpm') ? { tpm: {} } : {}),
          ...(has('rng') ? { rng: {} } : {}),
          autoattachPodInterface: false,
          // The guest has exactly the devices that were sent.
          autoattachGraphicsDevice: false,
          autoattachSerialConsole: has('console'),
          autoattachMemBalloon: entriesOfType(entries, 'balloon').some(
            ({ device }) => device.specParams?.['model'] !== 'none',
          ),
        },
      },
      networks: cards.map(({ network }) => network),
      // Defining the domain treats a volume without a medium as missing, and a drive without a volume as empty.
      volumes: disks
        .filter(({ entry, disk }) => media.has(entry.id) || disk.optional === true)
        .map(({ disk }) => ({ name: disk.name })),
    },
  };
}

/**
 * Returns the definition with the settings that an instance spec does not have: niceness and the error policy of disks.
 */
export function refineDefinition(definition: DomainDefinition, { conf, entries }: SentVm): DomainDefinition {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const devices = definition.devices.map((device) => {
    const entry = byId.get(device.id);
    return device.type === 'disk' && entry !== undefined ? withErrorPolicy(device, entry) : device;
  });
  return { ...definition, devices, ...(conf.nice > 0 && { nice: conf.nice }) };
}

/**
 * Sets the error policy as oVirt's hosts did: an error pauses the guest unless `propagateErrors` is on. Without it, the
 * hypervisor's default.
 */
export function withErrorPolicy(disk: DiskDevice, { device }: DeviceEntry): DiskDevice {
  const { propagateErrors } = device;
  if (isBlank(propagateErrors) || disk.media === 'floppy') return disk;
  return { ...disk, errorPolicy: isBlankOrOneOf('on')(propagateErrors) ? 'report' : 'stop' };
}

/** Returns an error for each device that would not get the address that was sent. */
export function findMisplacedDevices(entries: readonly DeviceEntry[], { devices }: DomainDefinition): FieldError[] {
  const placed = new Map(devices.map(({ id, address }) => [id, address]));
  return entries.flatMap(({ id, field, device }) => {
    const [requested, assigned] = [sentAddressOf(device), placed.get(id)];
    if (requested === undefined || assigned === undefined || device.device === 'pcie-root-port') return [];
    if (isSameAddress(requested, assigned)) return [];
    const message = `this machine cannot have it at ${formatAnyAddress(requested)}; it would be at ${formatAnyAddress(assigned)}`;
    return [{ reason: 'FieldValueInvalid' as const, field: `${field}.address`, message }];
  });
}

type Address = NonNullable<LearnedDevice['address']>;

export function isSameAddress(one: Address, other: Address): boolean {
  const [a, b] = [pciAddressFromMap(one), pciAddressFromMap(other)];
  if (a !== undefined && b !== undefined) {
    return a.domain === b.domain && a.bus === b.bus && a.slot === b.slot && a.function === b.function;
  }
  if (a !== undefined || b !== undefined || one['type'] !== other['type']) return false;
  return ['controller', 'bus', 'target', 'unit', 'port'].every(
    (key) => Number(one[key] ?? 0) === Number(other[key] ?? 0),
  );
}

/** Fields of an instance, and the keys of the host API that set them. */
const SENT_KEYS: readonly (readonly [string, string])[] = [
  ['spec.domain.machine.type', 'emulatedMachine'],
  ['spec.domain.memory.guest', 'memSize'],
  ['spec.domain.cpu.model', 'cpuType'],
  ['spec.domain.cpu', 'smp'],
  ['spec.domain.firmware.kernelBoot', 'kernel'],
];

/** Describes an error of the instance as one of the key or device that was sent. */
export function describeFieldError({ field, message }: FieldError, entries: readonly DeviceEntry[]): string {
  const known = SENT_KEYS.find(([ours]) => field.startsWith(ours));
  if (known !== undefined) return `${known[1]}: ${message}`;
  const [, list, index, id] = /\.(disks|interfaces)\[(\d+)\]|^status\.devices\[(.*)\]$/.exec(field) ?? [];
  const entry =
    id === undefined
      ? entriesOfType(entries, list === 'disks' ? 'disk' : 'interface')[Number(index)]
      : entries.find((candidate) => candidate.id === id);
  return `${entry?.field ?? field}: ${message}`;
}

export function entriesOfType(entries: readonly DeviceEntry[], type: string): readonly DeviceEntry[] {
  return entries.filter(({ device }) => device.type === type);
}
