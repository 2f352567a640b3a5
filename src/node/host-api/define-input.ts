/**
 * A VM of the host API as an instance: what define-domain.ts makes a guest of, so that there is one way to make guests.
 * Problems that it finds are told in the words of the caller. Pure.
 */
import { GUEST_IMAGE } from '#api/names.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Stored } from '#kube/meta.ts';
import { pciAddressFromMap, printAddress } from '#api/pci-address.ts';
import type { DefineInput } from '#node/definition/define-domain.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import type { DiskDevice, DomainDefinition } from '#node/definition/domain-definition.ts';
import type { KernelFiles } from '#node/definition/kernel.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import { addressOf } from '#node/host-api/device-fields.ts';
import { diskOf, interfaceOf, nameOf } from '#node/host-api/entry-spec.ts';
import { isEmpty, isOneOf } from '#node/host-api/key-rules.ts';
import { placeAsLibvirt } from '#node/host-api/place-as-libvirt.ts';
import type { SentVm } from '#node/host-api/sent-vm.ts';
import type { VmConf } from '#node/host-api/vm-conf.ts';

export interface HostVmInput {
  readonly conf: VmConf;
  readonly entries: readonly DeviceEntry[];
  /** By our id of the disk. */
  readonly media: ReadonlyMap<string, Medium>;
  readonly kernel: KernelFiles | undefined;
}

export interface HostDefineInput extends Omit<DefineInput, 'capabilities'> {
  /** Devices that cannot stand where libvirt had them. */
  readonly placeNotes: readonly string[];
}

export function defineInput(vm: HostVmInput): HostDefineInput {
  const { conf, entries, media, kernel } = vm;
  const disks = ofType(entries, 'disk');
  const placed = placeAsLibvirt(entries, { machine: conf.machine, vmchannel: conf.vmchannel });
  return {
    vmi: instanceOf(vm),
    known: { devices: placed.rows, imported: true, complete: true },
    placeNotes: placed.notes,
    volumes: new Map(
      disks.flatMap((entry) => {
        const medium = media.get(entry.id);
        return medium === undefined ? [] : [[nameOf(entry), medium] as const];
      }),
    ),
    kernel,
  };
}

function instanceOf({ conf, entries, media, kernel }: HostVmInput): Stored<VirtualMachineInstance> {
  const disks = ofType(entries, 'disk').map((entry) => ({ entry, disk: diskOf(entry) }));
  const cards = ofType(entries, 'interface').map(interfaceOf);
  const has = (type: string) => ofType(entries, type).length > 0;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    // No namespace: its name is never that of an instance of the API.
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
          // A host gives its guests what it is told, and no more.
          autoattachGraphicsDevice: false,
          autoattachSerialConsole: has('console'),
          autoattachMemBalloon: ofType(entries, 'balloon').some(
            ({ device }) => device.specParams?.['model'] !== 'none',
          ),
        },
      },
      networks: cards.map(({ network }) => network),
      // What has a volume and no medium is missing; a drive without a volume is empty.
      volumes: disks
        .filter(({ entry, disk }) => media.has(entry.id) || disk.optional === true)
        .map(({ disk }) => ({ name: disk.name })),
    },
  };
}

/** Returns the guest with what no instance can ask for: its priority, and what happens to errors of its disks. */
export function refined(definition: DomainDefinition, { conf, entries }: SentVm): DomainDefinition {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const devices = definition.devices.map((device) => {
    const entry = byId.get(device.id);
    return device.type === 'disk' && entry !== undefined ? withErrorPolicy(device, entry) : device;
  });
  return { ...definition, devices, ...(conf.nice > 0 && { nice: conf.nice }) };
}

/** As hosts of old did: an error stops the guest unless it is propagated. What is not sent is left to the hypervisor. */
export function withErrorPolicy(disk: DiskDevice, { device }: DeviceEntry): DiskDevice {
  const { propagateErrors } = device;
  if (isEmpty(propagateErrors) || disk.media === 'floppy') return disk;
  return { ...disk, errorPolicy: isOneOf('on')(propagateErrors) ? 'report' : 'stop' };
}

/** Devices that would not stand where they were sent to. */
export function misplaced(entries: readonly DeviceEntry[], { devices }: DomainDefinition): FieldError[] {
  const placed = new Map(devices.map(({ id, address }) => [id, address]));
  return entries.flatMap(({ id, field, device }) => {
    const [asked, given] = [addressOf(device), placed.get(id)];
    if (asked === undefined || given === undefined || device.device === 'pcie-root-port') return [];
    if (isSamePlace(asked, given)) return [];
    const message = `${printAddress(asked)} is no place for it in this machine; it would be ${printAddress(given)}`;
    return [{ reason: 'FieldValueInvalid' as const, field: `${field}.address`, message }];
  });
}

type Address = NonNullable<LearnedDevice['address']>;

export function isSamePlace(one: Address, other: Address): boolean {
  const [a, b] = [pciAddressFromMap(one), pciAddressFromMap(other)];
  if (a !== undefined && b !== undefined) {
    return a.domain === b.domain && a.bus === b.bus && a.slot === b.slot && a.function === b.function;
  }
  if (a !== undefined || b !== undefined || one['type'] !== other['type']) return false;
  return ['controller', 'bus', 'target', 'unit', 'port'].every(
    (key) => Number(one[key] ?? 0) === Number(other[key] ?? 0),
  );
}

const FIELDS: readonly (readonly [string, string])[] = [
  ['spec.domain.machine.type', 'emulatedMachine'],
  ['spec.domain.memory.guest', 'memSize'],
  ['spec.domain.cpu.model', 'cpuType'],
  ['spec.domain.cpu', 'smp'],
  ['spec.domain.firmware.kernelBoot', 'kernel'],
];

/** A problem of the instance, as one of what was sent. */
export function toldProblem({ field, message }: FieldError, entries: readonly DeviceEntry[]): string {
  const known = FIELDS.find(([ours]) => field.startsWith(ours));
  if (known !== undefined) return `${known[1]}: ${message}`;
  const [, list, index, id] = /\.(disks|interfaces)\[(\d+)\]|^status\.devices\[(.*)\]$/.exec(field) ?? [];
  const entry =
    id === undefined
      ? ofType(entries, list === 'disks' ? 'disk' : 'interface')[Number(index)]
      : entries.find((candidate) => candidate.id === id);
  return `${entry?.field ?? field}: ${message}`;
}

export function ofType(entries: readonly DeviceEntry[], type: string): readonly DeviceEntry[] {
  return entries.filter(({ device }) => device.type === type);
}
