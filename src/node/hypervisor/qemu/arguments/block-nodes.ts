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

function digest(deviceId: string): string {
  return createHash('sha256').update(deviceId).digest('hex').slice(0, 20);
}
