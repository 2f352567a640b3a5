/**
 * What a file is, by its first bytes. We read the header ourselves: programs that open an image to tell about it follow
 * what it names. An image may not name other files, because these would be opened with the rights of the hypervisor.
 */
import { failed, type Refusal } from './volumes-host.ts';

export const HEADER_BYTES = 104;

const QCOW2_MAGIC = 0x514649fb;
const BACKING_FILE_OFFSET = 8;
const VIRTUAL_SIZE = 24;
const CRYPT_METHOD = 32;
const INCOMPATIBLE_FEATURES = 72;
const EXTERNAL_DATA_FILE = 1n << 2n;
const MIN_LENGTH = 72;

export type ImageFormat =
  | { readonly is: 'raw' }
  /** As large as the guest sees it. */
  | { readonly is: 'qcow2'; readonly virtualBytes: number };

export function imageFormat(header: Buffer, path: string): ImageFormat | Refusal {
  if (header.length < 4 || header.readUInt32BE(0) !== QCOW2_MAGIC) return { is: 'raw' };
  if (header.length < MIN_LENGTH) return refused(path, 'its qcow2 header is cut off');
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) return refused(path, `its qcow2 version is ${version}; expected 2 or 3`);
  if (version === 3 && header.length < HEADER_BYTES) return refused(path, 'its qcow2 header is cut off');
  if (header.readBigUInt64BE(BACKING_FILE_OFFSET) !== 0n) return refused(path, 'it names a backing file');
  if (header.readUInt32BE(CRYPT_METHOD) !== 0) return refused(path, 'it is encrypted');
  const features = version === 3 ? header.readBigUInt64BE(INCOMPATIBLE_FEATURES) : 0n;
  if ((features & EXTERNAL_DATA_FILE) !== 0n) return refused(path, 'it keeps its data in another file');
  return { is: 'qcow2', virtualBytes: Number(header.readBigUInt64BE(VIRTUAL_SIZE)) };
}

function refused(path: string, why: string): Refusal {
  return failed('ImageRefused', `Cannot use image "${path}": ${why}; expected a raw or a self-contained qcow2 image`);
}
