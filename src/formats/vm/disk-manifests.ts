/** Builds the disks, volumes and claims of a description. Pure. */
import type { CDROM_BUSES, Disk, DiskBus } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { Findings } from '#formats/findings.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import { cloudInitManifests } from '#formats/vm/cloud-init.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim, type Secret } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';

export interface DiskOptions {
  /** The name of the VM. */
  readonly name: string;
  readonly namespace: string;
  /** The storage class of new claims. Default: that of the cluster. */
  readonly storageClass?: string;
  /** Existing claims by name of the disk. Every other disk with content gets a new one, `<vm>-<disk>`. */
  readonly claimNames?: ReadonlyMap<string, string>;
  /** Existing Secrets with cloud-init data by name of the disk. */
  readonly secretNames?: ReadonlyMap<string, string>;
}

export interface DiskManifests {
  readonly disks: readonly Disk[];
  readonly volumes: readonly VmiVolume[];
  readonly claims: readonly PersistentVolumeClaim[];
  readonly secrets: readonly Secret[];
}

const SECTOR = 512;
const MIN_BYTES = 1024 ** 2;
const EMPTY_DISC = '1Mi';

/** Writes no boot orders that are only implied: they follow from the order of the disks again. */
export function diskManifests(
  { disks: described, bootOrderIsImplied }: MachineDescription,
  options: DiskOptions,
  findings: Findings,
): DiskManifests {
  const disks: readonly DescribedDisk[] =
    bootOrderIsImplied === true ? described.map(({ bootOrder: _order, ...disk }) => disk) : described;
  const volumes: VmiVolume[] = [];
  const claims: PersistentVolumeClaim[] = [];
  const secrets: Secret[] = [];
  for (const disk of disks) {
    const { name, lun } = disk;
    if (lun !== undefined) {
      volumes.push({ name, directLun: { ...lun } });
      continue;
    }
    const existing = options.claimNames?.get(name);
    if (existing === undefined && disk.cloudInit !== undefined) {
      const made = cloudInitManifests(name, disk.cloudInit, options, findings);
      volumes.push({ name, cloudInitNoCloud: made.source });
      if (made.secret !== undefined) secrets.push(made.secret);
      continue;
    }
    if (existing === undefined && disk.media !== 'disk' && disk.file === undefined) {
      // The API requires a volume for every drive.
      findings.addNote(`the drive ${name} is empty; it gets an empty disc`);
      volumes.push({ name, emptyDisk: { capacity: EMPTY_DISC } });
      continue;
    }
    const claimName = existing ?? `${options.name}-${name}`;
    // A boot disk must be present from the start.
    const isHotplug = disk.hotpluggable === true && disk.bootOrder === undefined;
    volumes.push({ name, persistentVolumeClaim: { claimName, ...(isHotplug && { hotpluggable: true }) } });
    if (existing === undefined) claims.push(...buildClaim(disk, claimName, options, findings));
  }
  return { disks: disks.map((disk) => toDisk(disk, findings)), volumes, claims, secrets };
}

function buildClaim(
  { name, sizeBytes }: DescribedDisk,
  claimName: string,
  { namespace, storageClass }: DiskOptions,
  findings: Findings,
): PersistentVolumeClaim[] {
  if (sizeBytes === undefined) {
    findings.addError(`the file does not contain the size of the disk "${name}"; name a claim with its content`);
    return [];
  }
  const bytes = Math.max(MIN_BYTES, Math.ceil(sizeBytes / SECTOR) * SECTOR);
  return [
    {
      apiVersion: apiVersionOf(PERSISTENT_VOLUME_CLAIMS),
      kind: PERSISTENT_VOLUME_CLAIMS.kind,
      metadata: { name: claimName, namespace },
      spec: {
        accessModes: ['ReadWriteOnce'],
        ...(storageClass !== undefined && { storageClassName: storageClass }),
        resources: { requests: { storage: String(bytes) } },
      },
    },
  ];
}

function toDisk(disk: DescribedDisk, findings: Findings): Disk {
  const { name, media, bootOrder, cache, plugged, optional } = disk;
  // A LUN has the serial number of its device.
  const serial = media === 'lun' ? undefined : disk.serial;
  return {
    name,
    ...targetOf(disk, findings),
    ...(bootOrder !== undefined && plugged && { bootOrder }),
    ...(serial !== undefined && { serial }),
    ...(cache !== undefined && { cache }),
    ...(!plugged && { plugged }),
    ...(optional && { optional }),
  };
}

function targetOf(
  { name, media, bus, readonly }: DescribedDisk,
  findings: Findings,
): Pick<Disk, 'disk' | 'cdrom' | 'floppy' | 'lun'> {
  const only = readonly ? { readonly } : {};
  if (media === 'cdrom') return { cdrom: { bus: bus as (typeof CDROM_BUSES)[number] } };
  if (media === 'floppy') return { floppy: only };
  if (media === 'lun') return { lun: { bus: 'scsi', ...only } };
  const isWritable = (bus === 'sata' || bus === 'ide') && readonly;
  if (isWritable) findings.addNote(`the disk ${name} is on the bus ${bus}, where disks are always writable`);
  return { disk: { bus: bus as DiskBus, ...(isWritable ? {} : only) } };
}
