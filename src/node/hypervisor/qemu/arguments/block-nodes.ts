/** Names of QEMU's block nodes. They may have 31 characters at most, less than our ids: so they are derived. */
import { createHash } from 'node:crypto';

/** The node that the device stands on: its format, and what is resized. */
export function formatNodeName(deviceId: string): string {
  return `fmt-${digest(deviceId)}`;
}

/** The node below: the file or block device. */
export function fileNodeName(deviceId: string): string {
  return `file-${digest(deviceId)}`;
}

/** The node that a copy of a disk is written to, and the job that writes it. */
export function copyName(copyId: string): string {
  return `${COPY_PREFIX}${digest(copyId)}`;
}

export function isCopyName(name: string): boolean {
  return name.startsWith(COPY_PREFIX);
}

/** The node below: the file of the copy. */
export function copyFileName(copyId: string): string {
  return `copyfile-${digest(copyId)}`;
}

/** The node of a disk at the other end of a migration, and the job that writes it. */
export function mirrorName(deviceId: string): string {
  return `${MIRROR_PREFIX}${digest(deviceId)}`;
}

export function isMirrorName(name: string): boolean {
  return name.startsWith(MIRROR_PREFIX);
}

/** The node through which a disk is filled that its guest may only read. */
export function fillName(deviceId: string): string {
  return `fill-${digest(deviceId)}`;
}

const COPY_PREFIX = 'copy-';
const MIRROR_PREFIX = 'mirror-';

function digest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 20);
}
