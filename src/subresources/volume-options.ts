/**
 * The bodies of addvolume and removevolume: AddVolumeOptions and RemoveVolumeOptions. Disk and claim are handed on with
 * all that they say, for admission to judge it where it comes to stand: nothing is dropped. Pure.
 */
import type { AddedVolume } from '#api/can.ts';
import type { Disk } from '#api/domain/disk.ts';
import { badRequest } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { wrongType, type Fields } from '#subresources/body-fields.ts';

const KINDS = ['disk', 'lun', 'cdrom', 'floppy'] as const;
const DEFAULT_BUS = 'scsi';
const NO_BODY = 'Request with no body, a new name is expected as the request body';

/** Throws 400. */
export function readAddedVolume(body: Fields): AddedVolume {
  const name = nameIn(body, 'AddVolumeOptions');
  const disk = recordIn(body, 'AddVolumeOptions', 'disk', 'v1.Disk');
  if (disk === undefined) throw badRequest('AddVolumeOptions requires disk to not be nil');
  const source = recordIn(body, 'AddVolumeOptions', 'volumeSource', 'v1.HotplugVolumeSource');
  if (source === undefined) throw badRequest('AddVolumeOptions requires VolumeSource to not be nil');
  return { volume: { name, persistentVolumeClaim: claimOf(source) }, disk: { ...diskOf(disk), name } };
}

/** Throws 400. */
export function readRemovedVolume(body: Fields): string {
  return nameIn(body, 'RemoveVolumeOptions');
}

function nameIn(body: Fields, struct: string): string {
  if (Object.keys(body).length === 0) throw badRequest(NO_BODY);
  const name = body['name'] ?? '';
  if (typeof name !== 'string') throw wrongType(name, `${struct}.name`, 'string');
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
  if (typeof claimName !== 'string') throw wrongType(claimName, `${where}.persistentVolumeClaim.claimName`, 'string');
  if (claimName === '') throw badRequest(`${where}.persistentVolumeClaim requires claimName to be set`);
  return { ...claim, claimName, hotpluggable: true };
}

/** Without a kind it is a disk, and without a bus it comes to the one that every guest can take more disks on. */
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
  throw wrongType(value, `${struct}.${key}`, type);
}
