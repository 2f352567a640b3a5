/**
 * Converts a description to API objects: a halted VM, and claims for the content of its disks. An annotation of the VM
 * contains the rows, from which its record is created before the first start. Pure.
 */
import type { StateModes } from '#api/storage/storage-profile.ts';
import { chipsetOf } from '#api/devices/chipset.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { parseImportedDevices, type ImportedDevices } from '#api/devices/imported-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { placeKey } from '#formats/address-text.ts';
import { Findings } from '#formats/findings.ts';
import { sourceText, type MachineDescription } from '#formats/machine.ts';
import { diskManifests, type DiskManifests } from '#formats/vm/disk-manifests.ts';
import { hardwareManifests } from '#formats/vm/hardware-manifests.ts';
import { nicManifests } from '#formats/vm/nic-manifests.ts';
import { stateManifests } from '#formats/vm/state-manifests.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';

export interface ManifestOptions {
  readonly name: string;
  readonly namespace: string;
  /** The storage class of new claims. Default: that of the cluster. */
  readonly storageClass?: string;
  /** The storage class of the claim for the persistent state if `storageClass` is absent. */
  readonly stateStorageClass?: string;
  /** The modes of that claim. Default: Filesystem and ReadWriteOnce. */
  readonly stateModes?: StateModes;
  /** Existing claims by name of the disk. Every other disk with content gets a new one, `<vm>-<disk>`. */
  readonly claimNames?: ReadonlyMap<string, string>;
  /** The replacement of each network of the description: `pod` or a bridge of the node. */
  readonly networks?: ReadonlyMap<string, string>;
}

export interface Manifests {
  readonly vm: VirtualMachine;
  readonly claims: readonly PersistentVolumeClaim[];
  /** Sentences about changes, in addition to the notes of the description. */
  readonly notes: readonly string[];
}

/** Throws a FileFormatError if a disk has neither a size nor a claim, or if networks are invalid. */
export function toManifests(machine: MachineDescription, options: ManifestOptions): Manifests {
  const findings = new Findings();
  const disks = diskManifests(machine, options, findings);
  const { interfaces, networks } = nicManifests(machine.nics, options.networks ?? new Map<string, string>(), findings);
  const annotation = buildAnnotation(machine, findings);
  const type = chooseMachineType(machine, findings);
  findings.throwIfErrors('import machine');
  const vm: VirtualMachine = {
    apiVersion: apiVersionOf(VIRTUAL_MACHINES),
    kind: VIRTUAL_MACHINES.kind,
    metadata: {
      name: options.name,
      namespace: options.namespace,
      annotations: { [IMPORTED_DEVICES_ANNOTATION]: annotation },
    },
    spec: {
      runStrategy: 'Halted',
      template: {
        spec: {
          domain: buildDomain(machine, type, disks, interfaces),
          ...(disks.volumes.length > 0 && { volumes: [...disks.volumes] }),
          ...(networks.length > 0 && { networks: [...networks] }),
        },
      },
    },
  };
  return { vm, claims: [...disks.claims, ...stateManifests(machine, options, findings)], notes: findings.notes };
}

function buildDomain(
  machine: MachineDescription,
  type: string | undefined,
  { disks }: DiskManifests,
  interfaces: NonNullable<NonNullable<DomainSpec['devices']>['interfaces']>,
): DomainSpec {
  const { cpu, memoryMib, uuid, serial, firmware, tpm, state, rows } = machine;
  const has = (kind: string) => rows.some((row) => row.type === kind);
  // A file without any such devices does not mean that the machine has none.
  const knowsDevices = rows.some((row) => !['disk', 'interface', 'video'].includes(row.type));
  const isSecure = firmware === 'efi-secure';
  return {
    cpu: { ...cpu },
    memory: { guest: `${memoryMib}Mi` },
    ...(type !== undefined && { machine: { type } }),
    firmware: {
      ...(uuid !== undefined && { uuid }),
      ...(serial !== undefined && { serial }),
      bootloader:
        firmware === 'bios'
          ? { bios: {} }
          : { efi: { secureBoot: isSecure, ...(state?.efi === true && { persistent: true }) } },
    },
    ...(isSecure && { features: { smm: { enabled: true } } }),
    devices: {
      disks: [...disks],
      interfaces: [...interfaces],
      ...(interfaces.length === 0 && { autoattachPodInterface: false }),
      ...(tpm && { tpm: state?.tpm === true ? { persistent: true } : {} }),
      ...(has('rng') && { rng: {} }),
      ...hardwareManifests(rows),
      ...(knowsDevices && !has('balloon') && { autoattachMemBalloon: false }),
      ...(knowsDevices && !has('console') && { autoattachSerialConsole: false }),
    },
  };
}

/** Replaces machine types of other vendors (pc-q35-rhel8.0.0) with the newest type of the same chipset. */
function chooseMachineType({ machineType, chipset }: MachineDescription, findings: Findings): string | undefined {
  if (machineType !== undefined && /^(?:q35|pc|pc-(?:q35|i440fx)-[0-9]{1,2}\.[0-9]{1,2})$/.test(machineType))
    return machineType;
  const alias = chipset === undefined ? undefined : { q35: 'q35', i440fx: 'pc' }[chipset];
  if (machineType !== undefined) {
    findings.addNote(
      `the machine type ${machineType} is not supported; it is replaced with ${alias ?? 'the default of the cluster'}`,
    );
  }
  return alias;
}

function buildAnnotation(machine: MachineDescription, findings: Findings): string {
  const { source, machineType, chipset } = machine;
  const alias = chipset === 'i440fx' ? 'pc' : chipset;
  const originalType = chipsetOf(machineType) === undefined ? alias : machineType;
  const devices = buildRecordRows(machine, findings);
  const imported: ImportedDevices = {
    from: sourceText(source),
    ...(originalType !== undefined && { machine: originalType }),
    devices,
  };
  const text = JSON.stringify(imported);
  const parsed = parseImportedDevices(text);
  if ('fault' in parsed) findings.addError(`the devices cannot be recorded: ${parsed.fault}`);
  return text;
}

/**
 * Returns the rows for the record. The address of a drive does not contain its controller, so the bus is added. An
 * unplugged device loses its address if another device has it.
 */
function buildRecordRows({ rows, disks }: MachineDescription, findings: Findings): LearnedDevice[] {
  const buses = new Map<string, string>(disks.map(({ id, bus }) => [id, bus]));
  const occupied = new Set(
    rows.flatMap(({ plugged, address }) => (plugged === false ? [] : (placeKey(address) ?? []))),
  );
  return rows.map((row) => {
    const bus = buses.get(row.id);
    const specParams = bus === undefined ? row.specParams : { ...row.specParams, bus };
    const place = placeKey(row.address);
    const isLost = row.plugged === false && place !== undefined && occupied.has(place);
    if (isLost) findings.addNote(`${row.id} is not plugged, and another device is at its address; it gets a new one`);
    return { ...row, ...(specParams !== undefined && { specParams }), ...(isLost && { address: undefined }) };
  });
}
