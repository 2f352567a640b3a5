/**
 * What an import makes: claims, the VM, and which file becomes the content of which volume. Everything that is wrong is
 * found before anything is made. Pure.
 */
import { DISK_STREAM_FORMATS, UPLOAD_ANNOTATION, type DiskStreamFormat } from '#api/disk-stream.ts';
import { STATE_VOLUME } from '#api/persistent-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { bounded, FormatError, quoted } from '#formats/faults.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import { stateClaimFor } from '#formats/vm/state-manifests.ts';
import { toManifests } from '#formats/vm/to-manifests.ts';
import type { StateModes } from '#api/storage-profile.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { nameErrors } from '#kube/names.ts';

export interface ImportOptions {
  readonly namespace: string;
  readonly name?: string | undefined;
  readonly storageClass?: string | undefined;
  /** Of the persistent state, where no class is given. */
  readonly stateStorageClass?: string | undefined;
  /** The modes of the claim for the persistent state, as its storage class has them. */
  readonly stateModes?: StateModes | undefined;
  /** By disk: claims that have its content already. */
  readonly claims: ReadonlyMap<string, string>;
  /** By network of the file: `pod`, or a bridge of the node. */
  readonly networks: ReadonlyMap<string, string>;
  /** Another machine with the same hardware: no uuid, serial and MAC addresses of the file. */
  readonly newIdentity: boolean;
  /** The persistent state of the file goes to that other machine, too. */
  readonly keepState?: boolean;
}

/** A file that goes into a volume. */
export interface Upload {
  readonly volume: string;
  readonly claim: string;
  readonly file: string;
  readonly format: DiskStreamFormat;
}

export interface ImportPlan {
  readonly vm: VirtualMachine & { readonly metadata: { readonly name: string } };
  readonly claims: readonly PersistentVolumeClaim[];
  readonly uploads: readonly Upload[];
  readonly notes: readonly string[];
}

/** `canUpload`: whether the files that disks name are at hand; else they need claims. */
export function planImport(
  machine: MachineDescription,
  options: ImportOptions,
  { canUpload }: { readonly canUpload: boolean },
): ImportPlan | { readonly faults: readonly string[] } {
  const faults = [...nameFaults(machine, options), ...claimFaults(machine, options, canUpload)];
  const known = options.newIdentity ? withoutIdentity(machine, options) : machine;
  const leftOut = machine.state?.file !== undefined && known.state?.file === undefined ? [STATE_LEFT] : [];
  const name = options.name ?? machine.name;
  const { namespace, storageClass, stateStorageClass, stateModes, claims: claimNames, networks } = options;
  const classes = {
    ...(storageClass && { storageClass }),
    ...(stateStorageClass && { stateStorageClass }),
    ...(stateModes && { stateModes }),
  };
  try {
    const made = toManifests(known, { name, namespace, claimNames, networks, ...classes });
    if (faults.length > 0) return { faults: bounded(faults) };
    const uploads = [
      ...machine.disks.flatMap((disk) => uploadOf(disk, made.vm, options)),
      ...(canUpload ? stateUpload(known, name) : []),
    ];
    const awaiting = new Set(uploads.map(({ claim }) => claim));
    return {
      vm: { ...made.vm, metadata: { ...made.vm.metadata, name } },
      claims: made.claims.map((claim) => (awaiting.has(claim.metadata.name ?? '') ? awaitingUpload(claim) : claim)),
      uploads,
      notes: [...machine.notes, ...made.notes, ...leftOut],
    };
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return { faults: bounded([...new Set([...faults, ...error.faults])]) };
  }
}

function nameFaults({ name: ofFile }: MachineDescription, { name = ofFile }: ImportOptions): string[] {
  return nameErrors('subdomain', name).map((why) => `the name ${quoted(name)} is not valid for a VM: ${why}`);
}

function claimFaults({ disks }: MachineDescription, { claims }: ImportOptions, canUpload: boolean): string[] {
  const names = new Map(disks.map((disk) => [disk.name, disk]));
  const strange = [...claims.keys()].filter((disk) => !names.has(disk));
  const left = disks.filter((disk) => needsContent(disk) && !claims.has(disk.name));
  return [
    ...strange.map(
      (disk) => `--claim names the unknown disk ${quoted(disk)}; the disks are ${listText([...names.keys()])}`,
    ),
    ...[...claims]
      .filter(([disk]) => names.get(disk)?.lun !== undefined)
      .map(([disk]) => `--claim cannot be used for the disk ${disk}, which is a LUN`),
    ...left.flatMap(({ name, file, format }) => {
      if (!canUpload)
        return [
          `the disk ${name} is ${quoted(file ?? '')}; name the claim with its content with --claim ${name}=CLAIM`,
        ];
      if ((DISK_STREAM_FORMATS as readonly string[]).includes(format)) return [];
      return [
        `the disk ${name} is in the format ${format}, which is not supported; convert it with "qemu-img convert -O qcow2"`,
      ];
    }),
  ];
}

const needsContent = ({ file, lun }: DescribedDisk) => file !== undefined && lun === undefined;

function uploadOf(disk: DescribedDisk, { spec }: VirtualMachine, { claims }: ImportOptions): Upload[] {
  const { name, file } = disk;
  const format = DISK_STREAM_FORMATS.find((one) => one === disk.format);
  if (!needsContent(disk) || claims.has(name) || file === undefined || format === undefined) return [];
  const volume = spec.template.spec?.volumes?.find((one) => one.name === name);
  const claim = volume?.persistentVolumeClaim?.claimName;
  return claim === undefined ? [] : [{ volume: name, claim, file, format }];
}

function awaitingUpload(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { metadata } = claim;
  return { ...claim, metadata: { ...metadata, annotations: { ...metadata.annotations, [UPLOAD_ANNOTATION]: 'true' } } };
}

/** What makes it another machine; where its devices are stays. */
function withoutIdentity(machine: MachineDescription, { keepState }: ImportOptions): MachineDescription {
  const { uuid: _uuid, serial: _serial, state, ...rest } = machine;
  const kept = keepState === true ? state : state && { tpm: state.tpm, efi: state.efi };
  return { ...rest, ...(kept && { state: kept }), nics: machine.nics.map(({ mac: _mac, ...nic }) => nic) };
}

/** The keys in a TPM say who a machine is: two that have them are taken for one. */
const STATE_LEFT =
  'the persistent state is not imported, because it is part of the identity; use --keep-state to import it';

function stateUpload({ state }: MachineDescription, vmName: string): Upload[] {
  if (state?.file === undefined) return [];
  return [{ volume: STATE_VOLUME, claim: stateClaimFor(vmName), file: state.file, format: 'raw' }];
}

/** `disk=claim` and `network=bridge`. Returns what is wrong as a text. */
export function parsePairs(flag: string, texts: readonly string[]): ReadonlyMap<string, string> | string {
  const pairs = new Map<string, string>();
  for (const text of texts) {
    const equals = text.indexOf('=');
    const [key, value] = [text.slice(0, equals), text.slice(equals + 1)];
    if (equals <= 0 || value === '')
      return `invalid argument ${quoted(text)} for "--${flag}" flag: expected NAME=VALUE`;
    if (pairs.has(key)) return `--${flag} names ${quoted(key)} twice`;
    pairs.set(key, value);
  }
  return pairs;
}

const listText = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '));
