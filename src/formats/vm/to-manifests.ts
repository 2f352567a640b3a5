/**
 * A description as objects of the API: a VM that does not run yet, and the claims that its disks are to be copied into.
 * The rows go with it in an annotation, from which its record is made before its first start. Pure.
 */
import type { StateModes } from '#api/storage-profile.ts';
import { chipsetOf } from '#api/chipset.ts';
import type { Domain } from '#api/domain/domain.ts';
import { parseImportedDevices, type ImportedDevices } from '#api/imported-devices.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { placeOf } from '#formats/address-text.ts';
import { Findings } from '#formats/faults.ts';
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
  /** Of the claims that are made; the default one unless given. */
  readonly storageClass?: string;
  /** Of the claim for the persistent state, where no class is given. */
  readonly stateStorageClass?: string;
  /** Of that claim; Filesystem and ReadWriteOnce unless given. */
  readonly stateModes?: StateModes;
  /** By name of disk: claims that exist already. Every other disk with content gets a new one, `<vm>-<disk>`. */
  readonly claimNames?: ReadonlyMap<string, string>;
  /** By network of the description: `pod`, or the bridge of the node that stands in for it. */
  readonly networks?: ReadonlyMap<string, string>;
}

export interface Manifests {
  readonly vm: VirtualMachine;
  readonly claims: readonly PersistentVolumeClaim[];
  /** Besides those of the description: what became different. */
  readonly notes: readonly string[];
}

/** Throws a FormatError where a disk is of unknown size and has no claim, or where networks do not fit. */
export function toManifests(machine: MachineDescription, options: ManifestOptions): Manifests {
  const findings = new Findings();
  const disks = diskManifests(machine, options, findings);
  const { interfaces, networks } = nicManifests(machine.nics, options.networks ?? new Map<string, string>(), findings);
  const annotation = importedDevices(machine, findings);
  const type = machineTypeOf(machine, findings);
  findings.settle('import machine');
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
          domain: domainOf(machine, type, disks, interfaces),
          ...(disks.volumes.length > 0 && { volumes: [...disks.volumes] }),
          ...(networks.length > 0 && { networks: [...networks] }),
        },
      },
    },
  };
  return { vm, claims: [...disks.claims, ...stateManifests(machine, options, findings)], notes: findings.notes };
}

function domainOf(
  machine: MachineDescription,
  type: string | undefined,
  { disks }: DiskManifests,
  interfaces: NonNullable<NonNullable<Domain['devices']>['interfaces']>,
): Domain {
  const { cpu, memoryMib, uuid, serial, firmware, tpm, state, rows } = machine;
  const has = (kind: string) => rows.some((row) => row.type === kind);
  // A file that names no such devices at all says nothing of them.
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

/** Versions of other makers (pc-q35-rhel8.0.0) are not there: the newest of the same chipset stands in. */
function machineTypeOf({ machineType, chipset }: MachineDescription, findings: Findings): string | undefined {
  if (machineType !== undefined && /^(?:q35|pc|pc-(?:q35|i440fx)-[0-9]{1,2}\.[0-9]{1,2})$/.test(machineType))
    return machineType;
  const alias = chipset === undefined ? undefined : { q35: 'q35', i440fx: 'pc' }[chipset];
  if (machineType !== undefined) {
    findings.note(`the machine type ${machineType} is not there; it becomes ${alias ?? 'the default of the cluster'}`);
  }
  return alias;
}

function importedDevices(machine: MachineDescription, findings: Findings): string {
  const { source, machineType, chipset } = machine;
  const alias = chipset === 'i440fx' ? 'pc' : chipset;
  const ran = chipsetOf(machineType) === undefined ? alias : machineType;
  const devices = rowsToRecord(machine, findings);
  const imported: ImportedDevices = { from: sourceText(source), ...(ran !== undefined && { machine: ran }), devices };
  const text = JSON.stringify(imported);
  const parsed = parseImportedDevices(text);
  if ('fault' in parsed) findings.fault(`what is known of its devices cannot be kept: ${parsed.fault}`);
  return text;
}

/**
 * The address of a drive does not say on which controller it is, so the bus goes with it. What is not plugged loses its
 * address where another device has it now.
 */
function rowsToRecord({ rows, disks }: MachineDescription, findings: Findings): LearnedDevice[] {
  const buses = new Map<string, string>(disks.map(({ id, bus }) => [id, bus]));
  const taken = new Set(rows.flatMap(({ plugged, address }) => (plugged === false ? [] : (placeOf(address) ?? []))));
  return rows.map((row) => {
    const bus = buses.get(row.id);
    const specParams = bus === undefined ? row.specParams : { ...row.specParams, bus };
    const place = placeOf(row.address);
    const isLost = row.plugged === false && place !== undefined && taken.has(place);
    if (isLost) findings.note(`${row.id} is not plugged, and another device is at its address; it gets a new one`);
    return { ...row, ...(specParams !== undefined && { specParams }), ...(isLost && { address: undefined }) };
  });
}
