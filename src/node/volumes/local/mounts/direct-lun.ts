/**
 * Prepares directLun volumes: block devices of this machine that the instance names by the guid of a SCSI device or the
 * uuid of its content. Devices that the machine itself uses (file system, swap, member of a larger device) and devices
 * of claims are refused.
 */
import { constants } from 'node:fs';
import { access, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { VmiVolume } from '#api/domain/volume.ts';
import { isErrorWithCode, isFileName } from '#node/volumes/local/mounts/directory.ts';
import { isVolumeDevice } from '#node/volumes/local/mounts/loop-device.ts';
import { prepareDevice } from '#node/volumes/local/kinds/persistent-volume.ts';
import {
  failedRefusal,
  missingRefusal,
  waitingRefusal,
  type PreparedDisk,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

export type DirectLun = NonNullable<VmiVolume['directLun']>;

const NAME = /^[A-Za-z0-9._:-]{1,128}$/;

export async function prepareDirectLun(lun: DirectLun, host: Pick<VolumesHost, 'devDir'>): Promise<PreparedDisk> {
  const path = await findLun(lun, host.devDir);
  if (typeof path !== 'string') return path;
  return (await refuseDeviceInUse(path)) ?? (await refuseClaimDevice(path)) ?? (await prepareDevice(path, false));
}

/** Refuses the loop device of a claim, which has a uuid, too, if the volume contains a file system. */
async function refuseClaimDevice(path: string): Promise<VolumeRefusal | undefined> {
  if (!(await isVolumeDevice(await realpath(path)))) return undefined;
  return failedRefusal('LunRefused', `Cannot use block device "${path}": it belongs to a claim; use the claim instead`);
}

/** Returns the path of the device, such as `/dev/disk/by-id/wwn-0x6001405...`, or a refusal. */
async function findLun(lun: DirectLun, devDir: string): Promise<string | VolumeRefusal> {
  const names = candidateNames(lun);
  if (names === undefined) {
    return failedRefusal(
      'LunRefused',
      'Cannot use a direct LUN: expected either a guid or a uuid, of letters, digits and "._:-"',
    );
  }
  for (const name of names) {
    const path = join(devDir, ...name);
    if (await exists(path)) return path;
  }
  return missingRefusal('LunMissing', `Cannot use LUN "${lun.guid ?? lun.uuid}": this node has no such block device`);
}

/** Returns the possible paths below /dev, the best first, or undefined if guid and uuid are invalid. Pure. */
export function candidateNames({ guid, uuid }: DirectLun): readonly (readonly string[])[] | undefined {
  if (guid !== undefined && uuid !== undefined) return undefined;
  const name = guid ?? uuid ?? '';
  if (!NAME.test(name) || !isFileName(name)) return undefined;
  if (uuid !== undefined) return [['disk', 'by-uuid', uuid]];
  const ids = [`wwn-0x${name}`, `scsi-${name}`, `dm-uuid-mpath-${name}`, name];
  return [...ids.map((id) => ['disk', 'by-id', id]), ['mapper', name]];
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** Refuses a device that the machine uses. The kernel then refuses to open it exclusively. */
async function refuseDeviceInUse(path: string): Promise<VolumeRefusal | undefined> {
  try {
    const device = await open(path, constants.O_RDONLY | constants.O_EXCL | constants.O_NONBLOCK);
    await device.close();
    return undefined;
  } catch (error) {
    if (isErrorWithCode(error, 'EBUSY')) {
      return waitingRefusal('LunInUse', `Cannot use block device "${path}": this machine itself uses it`);
    }
    if (isErrorWithCode(error, 'ENXIO', 'ENODEV', 'ENOENT', 'ENOMEDIUM')) {
      return missingRefusal('LunMissing', `Cannot use block device "${path}": the device does not exist`);
    }
    throw error;
  }
}
