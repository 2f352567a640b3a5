/**
 * directLun: a block device of this machine that the instance names itself, by the guid of a SCSI device or the uuid of
 * what is on it. What this machine uses itself (a file system, a swap, a part of something larger) is never given away,
 * nor is what a claim stands on.
 */
import { constants } from 'node:fs';
import { access, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Volume } from '#api/domain/volume.ts';
import { isErrorWithCode, isFileName } from './directory.ts';
import { isVolumeDevice } from './loop-device.ts';
import { deviceVolume } from './persistent-volume.ts';
import { failed, missing, waiting, type Prepared, type Refusal, type VolumesHost } from './volumes-host.ts';

export type DirectLun = NonNullable<Volume['directLun']>;

const NAME = /^[A-Za-z0-9._:-]{1,128}$/;

export async function prepareDirectLun(
  lun: DirectLun,
  host: Pick<VolumesHost, 'devDir' | 'guestUser'>,
): Promise<Prepared> {
  const path = await findLun(lun, host.devDir);
  if (typeof path !== 'string') return path;
  return (await ownUse(path)) ?? (await otherUse(path)) ?? (await deviceVolume(path, false, host));
}

/** A file system in the volume of a claim has a uuid, too, and its device is there as long as a guest has the claim. */
async function otherUse(path: string): Promise<Refusal | undefined> {
  if (!(await isVolumeDevice(await realpath(path)))) return undefined;
  return failed('LunRefused', `Cannot use block device "${path}": it is the volume of a claim`);
}

/** The path under which the machine has it: `/dev/disk/by-id/wwn-0x6001405...`. */
export async function findLun(lun: DirectLun, devDir: string): Promise<string | Refusal> {
  const names = namesOf(lun);
  if (names === undefined) {
    return failed(
      'LunRefused',
      'Cannot use a direct LUN: expected either a guid or a uuid, of letters, digits and "._:-"',
    );
  }
  for (const name of names) {
    const path = join(devDir, ...name);
    if (await isThere(path)) return path;
  }
  return missing('LunMissing', `Cannot use LUN "${lun.guid ?? lun.uuid}": this node has no such block device`);
}

/** Pure: where it may be, below /dev, best first; undefined for what names nothing. */
export function namesOf({ guid, uuid }: DirectLun): readonly (readonly string[])[] | undefined {
  if (guid !== undefined && uuid !== undefined) return undefined;
  const name = guid ?? uuid ?? '';
  if (!NAME.test(name) || !isFileName(name)) return undefined;
  if (uuid !== undefined) return [['disk', 'by-uuid', uuid]];
  const ids = [`wwn-0x${name}`, `scsi-${name}`, `dm-uuid-mpath-${name}`, name];
  return [...ids.map((id) => ['disk', 'by-id', id]), ['mapper', name]];
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** The kernel lets nobody have a block device for himself that it uses, or a part of it. */
async function ownUse(path: string): Promise<Refusal | undefined> {
  try {
    const device = await open(path, constants.O_RDONLY | constants.O_EXCL | constants.O_NONBLOCK);
    await device.close();
    return undefined;
  } catch (error) {
    if (isErrorWithCode(error, 'EBUSY')) {
      return waiting('LunInUse', `Cannot use block device "${path}": this machine uses it itself`);
    }
    if (isErrorWithCode(error, 'ENXIO', 'ENODEV', 'ENOENT', 'ENOMEDIUM')) {
      return missing('LunMissing', `Cannot use block device "${path}": there is nothing behind it`);
    }
    throw error;
  }
}
