/** Tar entries of an image layer: ustar headers with modes, the same for every build. Pure. */

export type TarEntry =
  | { readonly type: 'directory'; readonly name: string; readonly mode: number }
  /** The content is read from a file of this machine, or given. */
  | { readonly type: 'file'; readonly name: string; readonly mode: number; readonly from: string | Buffer };

const BLOCK = 512;
const MAX_NAME = 100;
const MAX_PREFIX = 155;

/** Returns the header of an entry with `size` bytes. The owner is root, the time 1970. */
export function tarHeader({ type, name, mode }: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1');
  const [prefix, rest] = splitName(type === 'directory' ? `${name}/` : name);
  block.write(rest, 0);
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(0, 136, 11);
  block.write(type === 'directory' ? '5' : '0', 156, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(prefix, 345);
  // The checksum is computed with blanks in its own field.
  block.fill(0x20, 148, 156);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Splits a long name at a slash, so that both parts fit. */
function splitName(name: string): [prefix: string, rest: string] {
  if (Buffer.byteLength(name) <= MAX_NAME) return ['', name];
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) {
    const [prefix, rest] = [name.slice(0, at), name.slice(at + 1)];
    if (rest !== '' && Buffer.byteLength(rest) <= MAX_NAME && Buffer.byteLength(prefix) <= MAX_PREFIX) {
      return [prefix, rest];
    }
  }
  throw new Error(`Cannot store ${name}: the name is too long for a tar archive`);
}

/** Returns the bytes that fill the last block of a file. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

export const TAR_END = Buffer.alloc(2 * BLOCK);
