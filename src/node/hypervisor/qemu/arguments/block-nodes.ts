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

const COPY_PREFIX = 'copy-';

function digest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 20);
}
