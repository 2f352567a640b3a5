/**
 * Plans an import: the claims, the VM, and the file for the content of each volume. All errors are found before anything
 * is created. Pure.
 */
import { DISK_STREAM_FORMATS, UPLOAD_ANNOTATION, type DiskStreamFormat } from '#api/storage/disk-stream.ts';
import { STATE_VOLUME } from '#api/storage/persistent-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { limitList, FileFormatError } from '#formats/findings.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import { stateClaimFor, toManifests } from '#formats/vm/to-manifests.ts';
import type { StateModes } from '#api/storage/storage-profile.ts';
import type { PersistentVolumeClaim, Secret } from '#kube/core-kinds.ts';
import { nameErrors } from '#kube/names.ts';
import { quoteText } from '#lib/text/quote-text.ts';

export interface ImportOptions {
  readonly namespace: string;
  readonly name?: string | undefined;
  readonly storageClass?: string | undefined;
  /** The storage class of the persistent state. Used if no class is given. */
  readonly stateStorageClass?: string | undefined;
  /** The access and volume mode of the state claim, from its storage class. */
  readonly stateModes?: StateModes | undefined;
  /** Claims that already have the content of a disk, by disk name. */
  readonly claims: ReadonlyMap<string, string>;
  /** `pod` or the name of a NetworkAttachmentDefinition, by network of the file. */
  readonly networks: ReadonlyMap<string, string>;
  /** Secrets that already have the cloud-init data of a disk, by disk name. */
  readonly secrets?: ReadonlyMap<string, string>;
  /** The machine types that nodes offer, as far as the user may know them. */
  readonly offeredTypes?: ReadonlySet<string>;
  /** True to create a different machine with the same hardware, without uuid, serial and MAC addresses of the file. */
  readonly newIdentity: boolean;
  /** True to import the persistent state even with a new identity. */
  readonly keepState?: boolean;
}

/** A file to upload into a volume. */
export interface Upload {
  readonly volume: string;
  readonly claim: string;
  readonly file: string;
  readonly format: DiskStreamFormat;
}

export interface ImportPlan {
  readonly vm: VirtualMachine & { readonly metadata: { readonly name: string } };
  readonly claims: readonly PersistentVolumeClaim[];
  /** Created after the VM, which will own them. */
  readonly secrets: readonly Secret[];
  readonly uploads: readonly Upload[];
  readonly notes: readonly string[];
}

/** `canUpload` is true if the files of disks are available. Otherwise the disks need claims. */
export function planImport(
  machine: MachineDescription,
  options: ImportOptions,
  { canUpload }: { readonly canUpload: boolean },
): ImportPlan | { readonly errors: readonly string[] } {
  const errors = [
    ...checkName(machine, options),
    ...checkClaims(machine, options, canUpload),
    ...checkSecrets(machine, options),
  ];
  const known = options.newIdentity ? removeIdentity(machine, options) : machine;
  const omitsState = machine.state?.file !== undefined && known.state?.file === undefined;
  const name = options.name ?? machine.name;
  const { namespace, storageClass, stateStorageClass, stateModes, claims: claimNames, networks, secrets } = options;
  const classes = {
    ...(storageClass && { storageClass }),
    ...(stateStorageClass && { stateStorageClass }),
    ...(stateModes && { stateModes }),
  };
  try {
    const { offeredTypes } = options;
    const names = {
      claimNames,
      networks,
      ...(secrets && { secretNames: secrets }),
      ...(offeredTypes && { offeredTypes }),
    };
    const manifests = toManifests(known, { name, namespace, omitsState, ...names, ...classes });
    if (errors.length > 0) return { errors: limitList(errors) };
    const uploads = [
      ...machine.disks.flatMap((disk) => findUpload(disk, manifests.vm, options)),
      ...(canUpload ? findStateUpload(known, name) : []),
    ];
    const awaiting = new Set(uploads.map(({ claim }) => claim));
    return {
      vm: { ...manifests.vm, metadata: { ...manifests.vm.metadata, name } },
      claims: manifests.claims.map((claim) =>
        awaiting.has(claim.metadata.name ?? '') ? markAwaitingUpload(claim) : claim,
      ),
      secrets: manifests.secrets,
      uploads,
      notes: [...machine.notes, ...manifests.notes, ...(omitsState ? [STATE_OMITTED] : [])],
    };
  } catch (error) {
    if (!(error instanceof FileFormatError)) throw error;
    return { errors: limitList([...new Set([...errors, ...error.errors])]) };
  }
}

function checkName({ name: ofFile }: MachineDescription, { name = ofFile }: ImportOptions): string[] {
  return nameErrors('subdomain', name).map((why) => `the name ${quoteText(name)} is not valid for a VM: ${why}`);
}

function checkClaims({ disks }: MachineDescription, { claims }: ImportOptions, canUpload: boolean): string[] {
  const names = new Map(disks.map((disk) => [disk.name, disk]));
  const unknown = [...claims.keys()].filter((disk) => !names.has(disk));
  const left = disks.filter((disk) => needsContent(disk) && !claims.has(disk.name));
  return [
    ...unknown.map(
      (disk) => `--claim names the unknown disk ${quoteText(disk)}; the disks are ${listText([...names.keys()])}`,
    ),
    ...[...claims]
      .filter(([disk]) => names.get(disk)?.lun !== undefined)
      .map(([disk]) => `--claim cannot be used for the disk ${disk}, which is a LUN`),
    ...left.flatMap(({ name, file, format }) => {
      if (!canUpload)
        return [
          `the disk ${name} is ${quoteText(file ?? '')}; name the claim with its content with --claim ${name}=CLAIM`,
        ];
      if ((DISK_STREAM_FORMATS as readonly string[]).includes(format)) return [];
      return [
        `the disk ${name} is in the format ${format}, which is not supported; convert it with "qemu-img convert -O qcow2"`,
      ];
    }),
  ];
}

function checkSecrets({ disks }: MachineDescription, { secrets = new Map<string, string>() }: ImportOptions): string[] {
  const names = disks.flatMap(({ name, cloudInit }) =>
    cloudInit?.userData?.secret === undefined && cloudInit?.networkData?.secret === undefined ? [] : [name],
  );
  return [...secrets.keys()]
    .filter((disk) => !names.includes(disk))
    .map(
      (disk) => `--secret names ${quoteText(disk)}; the disks with cloud-init data in a Secret are ${listText(names)}`,
    );
}

const needsContent = ({ file, lun }: DescribedDisk) => file !== undefined && lun === undefined;

function findUpload(disk: DescribedDisk, { spec }: VirtualMachine, { claims }: ImportOptions): Upload[] {
  const { name, file } = disk;
  const format = DISK_STREAM_FORMATS.find((one) => one === disk.format);
  if (!needsContent(disk) || claims.has(name) || file === undefined || format === undefined) return [];
  const volume = spec.template.spec?.volumes?.find((one) => one.name === name);
  const claim = volume?.persistentVolumeClaim?.claimName;
  return claim === undefined ? [] : [{ volume: name, claim, file, format }];
}

function markAwaitingUpload(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { metadata } = claim;
  return { ...claim, metadata: { ...metadata, annotations: { ...metadata.annotations, [UPLOAD_ANNOTATION]: 'true' } } };
}

/** Removes what identifies the machine. The addresses of devices are kept. */
function removeIdentity(machine: MachineDescription, { keepState }: ImportOptions): MachineDescription {
  const { uuid: _uuid, serial: _serial, state, ...rest } = machine;
  const kept = keepState === true ? state : state && { tpm: state.tpm, efi: state.efi };
  return { ...rest, ...(kept && { state: kept }), nics: machine.nics.map(({ mac: _mac, ...nic }) => nic) };
}

/** The keys in a TPM identify a machine, so two machines must not share them. */
const STATE_OMITTED =
  'the persistent state is not imported, because it is part of the identity: TPM and EFI start empty; ' +
  'use --keep-state to import it';

function findStateUpload({ state }: MachineDescription, vmName: string): Upload[] {
  if (state?.file === undefined) return [];
  return [{ volume: STATE_VOLUME, claim: stateClaimFor(vmName), file: state.file, format: 'raw' }];
}

/** Parses `disk=claim` and `network=name`. Returns an error message if one is invalid. */
export function parsePairs(flag: string, texts: readonly string[]): ReadonlyMap<string, string> | string {
  const pairs = new Map<string, string>();
  for (const text of texts) {
    const equals = text.indexOf('=');
    const [key, value] = [text.slice(0, equals), text.slice(equals + 1)];
    if (equals <= 0 || value === '')
      return `invalid argument ${quoteText(text)} for "--${flag}" flag: expected NAME=VALUE`;
    if (pairs.has(key)) return `--${flag} names ${quoteText(key)} twice`;
    pairs.set(key, value);
  }
  return pairs;
}

const listText = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '));
