/** Names of QEMU's block nodes. They are hashes of our ids, because QEMU allows only 31 characters. */
import { createHash } from 'node:crypto';

/** Returns the name of the format node, which the device uses and which is resized. */
export function formatNodeName(deviceId: string): string {
  return `fmt-${digest(deviceId)}`;
}

/** Returns the name of the file node below the format node: the file or block device. */
export function fileNodeName(deviceId: string): string {
  return `file-${digest(deviceId)}`;
}

/** Returns the name of the node to which a disk is copied, and of the copy job. */
export function copyName(copyId: string): string {
  return `${COPY_PREFIX}${digest(copyId)}`;
}

export function isCopyName(name: string): boolean {
  return name.startsWith(COPY_PREFIX);
}

/** Returns the name of the file node below the node of a copy. */
export function copyFileName(copyId: string): string {
  return `copyfile-${digest(copyId)}`;
}

/** Returns the name of the node of a disk on the target of a migration, and of the mirror job. */
export function mirrorName(deviceId: string): string {
  return `${MIRROR_PREFIX}${digest(deviceId)}`;
}

export function isMirrorName(name: string): boolean {
  return name.startsWith(MIRROR_PREFIX);
}

/** Returns the name of the writable node through which a read-only disk is received. */
export function fillNodeName(deviceId: string): string {
  return `fill-${digest(deviceId)}`;
}

const COPY_PREFIX = 'copy-';
const MIRROR_PREFIX = 'mirror-';

function digest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 20);
}
