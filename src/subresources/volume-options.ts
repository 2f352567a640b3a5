/**
 * Parses AddVolumeOptions and RemoveVolumeOptions, the bodies of addvolume and removevolume. All fields of disk and
 * claim are passed on, so that admission validates them in the object to which they are added. Pure.
 */
import type { Disk } from '#api/domain/disk.ts';
import { badRequest } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { wrongTypeError, type Fields } from '#subresources/body-fields.ts';
import type { AddedVolume } from '#api/verbs/verb.ts';

const KINDS = ['disk', 'lun', 'cdrom', 'floppy'] as const;
const DEFAULT_BUS = 'scsi';
const NO_BODY = 'Request with no body, a new name is expected as the request body';

/** Returns the volume and disk to add; throws 400. */
export function readAddedVolume(body: Fields): AddedVolume {
  const name = nameIn(body, 'AddVolumeOptions');
  const disk = recordIn(body, 'AddVolumeOptions', 'disk', 'v1.Disk');
  if (disk === undefined) throw badRequest('AddVolumeOptions requires disk to not be nil');
  const source = recordIn(body, 'AddVolumeOptions', 'volumeSource', 'v1.HotplugVolumeSource');
  if (source === undefined) throw badRequest('AddVolumeOptions requires VolumeSource to not be nil');
  return { volume: { name, persistentVolumeClaim: claimOf(source) }, disk: { ...diskOf(disk), name } };
}

/** Returns the name of the volume to remove; throws 400. */
export function readRemovedVolume(body: Fields): string {
  return nameIn(body, 'RemoveVolumeOptions');
}

function nameIn(body: Fields, struct: string): string {
  if (Object.keys(body).length === 0) throw badRequest(NO_BODY);
  const name = body['name'] ?? '';
  if (typeof name !== 'string') throw wrongTypeError(name, `${struct}.name`, 'string');
  if (name === '') throw badRequest(`${struct} requires name to be set`);
  return name;
}

function claimOf(source: Fields): AddedVolume['volume']['persistentVolumeClaim'] {
  const where = 'AddVolumeOptions.volumeSource';
  if ((source['dataVolume'] ?? null) !== null) {
    throw badRequest(`${where}.dataVolume is not supported yet; name its claim in ${where}.persistentVolumeClaim`);
  }
  const claim = recordIn(source, where, 'persistentVolumeClaim', 'v1.PersistentVolumeClaimVolumeSource');
  if (claim === undefined) throw badRequest(`${where} requires persistentVolumeClaim to be set`);
  const claimName = claim['claimName'] ?? '';
  if (typeof claimName !== 'string')
    throw wrongTypeError(claimName, `${where}.persistentVolumeClaim.claimName`, 'string');
  if (claimName === '') throw badRequest(`${where}.persistentVolumeClaim requires claimName to be set`);
  return { ...claim, claimName, hotpluggable: true };
}

/** Returns the disk with defaults: a disk, on the bus that supports hotplug in every guest. */
function diskOf(disk: Fields): Partial<Disk> {
  const kinds = KINDS.filter((kind) => (disk[kind] ?? null) !== null);
  if (kinds.length === 0) return { ...disk, disk: { bus: DEFAULT_BUS } };
  const kind = kinds.find((one) => one === 'disk' || one === 'lun');
  if (kind === undefined) return disk;
  const target = disk[kind];
  return isRecord(target) && !target['bus'] ? { ...disk, [kind]: { ...target, bus: DEFAULT_BUS } } : disk;
}

function recordIn(fields: Fields, struct: string, key: string, type: string): Fields | undefined {
  const value = fields[key] ?? undefined;
  if (value === undefined || isRecord(value)) return value;
  throw wrongTypeError(value, `${struct}.${key}`, type);
}
