/**
 * Detects the format of an image by its first bytes. We parse them ourselves, because tools that inspect an image open
 * the files that it refers to. An image that refers to other files is refused: the hypervisor would open these with its
 * own rights. Pure.
 */
export const HEADER_BYTES = 104;

const QCOW2_MAGIC = 0x514649fb;
const BACKING_FILE_OFFSET = 8;
const VIRTUAL_SIZE = 24;
const CRYPT_METHOD = 32;
const L1_TABLE_OFFSET = 40;
const REFCOUNT_TABLE_OFFSET = 48;
const INCOMPATIBLE_FEATURES = 72;
const EXTERNAL_DATA_FILE = 1n << 2n;
const MIN_LENGTH = 72;

export type ImageHeader =
  | { readonly is: 'raw' }
  /** `virtualBytes` is the size that the guest sees. */
  | { readonly is: 'qcow2'; readonly virtualBytes: number }
  /** `isDamaged`: no tool writes such an image. */
  | { readonly is: 'refused'; readonly why: string; readonly isDamaged?: true };

/** Everything that is not qcow2 is raw: a guest may write anything to its disk. */
export function readImageHeader(header: Buffer): ImageHeader {
  if (header.length < 4 || header.readUInt32BE(0) !== QCOW2_MAGIC) return { is: 'raw' };
  if (header.length < MIN_LENGTH) return refuseDamaged('its qcow2 header is cut off');
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) return refuseDamaged(`its qcow2 version is ${version}; expected 2 or 3`);
  if (version === 3 && header.length < HEADER_BYTES) return refuseDamaged('its qcow2 header is cut off');
  if (header.readBigUInt64BE(BACKING_FILE_OFFSET) !== 0n) return refuseImage('it names a backing file');
  if (header.readUInt32BE(CRYPT_METHOD) !== 0) return refuseImage('it is encrypted');
  const features = version === 3 ? header.readBigUInt64BE(INCOMPATIBLE_FEATURES) : 0n;
  if ((features & EXTERNAL_DATA_FILE) !== 0n) return refuseImage('it keeps its data in another file');
  return { is: 'qcow2', virtualBytes: Number(header.readBigUInt64BE(VIRTUAL_SIZE)) };
}

/**
 * Returns that the file of a qcow2 image ends before its tables, or undefined. QEMU would open such an image and show
 * zeros to the guest.
 */
export function findCutOff(header: Buffer, fileBytes: number): string | undefined {
  const tablesAt = [L1_TABLE_OFFSET, REFCOUNT_TABLE_OFFSET].map((offset) => Number(header.readBigUInt64BE(offset)));
  const lastAt = Math.max(...tablesAt);
  return lastAt < fileBytes ? undefined : `its file is cut off: it has ${fileBytes} bytes, and a table is at ${lastAt}`;
}

/**
 * Formats with `magic` at offset `at`. LUKS is not listed: a raw disk that its guest has encrypted begins the same way.
 */
const UNSUPPORTED_FORMATS: readonly { readonly name: string; readonly at: number; readonly magic: Buffer }[] = [
  { name: 'vmdk', at: 0, magic: Buffer.from('KDMV') },
  { name: 'vmdk', at: 0, magic: Buffer.from('COWD') },
  { name: 'vmdk', at: 0, magic: Buffer.from('# Disk DescriptorFile') },
  { name: 'vhdx', at: 0, magic: Buffer.from('vhdxfile') },
  { name: 'vhd', at: 0, magic: Buffer.from('conectix') },
  { name: 'vdi', at: 64, magic: Buffer.from([0x7f, 0x10, 0xda, 0xbe]) },
  { name: 'qed', at: 0, magic: Buffer.from('QED\0') },
  { name: 'parallels', at: 0, magic: Buffer.from('WithoutFreeSpace') },
  { name: 'parallels', at: 0, magic: Buffer.from('WithouFreSpacExt') },
  { name: 'gzip', at: 0, magic: Buffer.from([0x1f, 0x8b]) },
  { name: 'xz', at: 0, magic: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]) },
  { name: 'zstd', at: 0, magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]) },
];

/**
 * Returns the name of an unsupported image format or compression, or undefined. Only for images that users upload: as a
 * disk, such an image would be treated as raw and be of no use.
 */
export function findUnsupportedFormat(header: Buffer): string | undefined {
  return UNSUPPORTED_FORMATS.find(({ at, magic }) => header.subarray(at, at + magic.length).equals(magic))?.name;
}

const refuseImage = (why: string): ImageHeader => ({ is: 'refused', why });
const refuseDamaged = (why: string): ImageHeader => ({ is: 'refused', why, isDamaged: true });
