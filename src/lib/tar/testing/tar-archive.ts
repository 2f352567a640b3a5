/** Builds archives byte by byte, for tests of readers. */
import { printTarHeader } from '#lib/tar/tar-header.ts';

/** Returns an entry with a correct checksum after `change` has modified its header. */
export function tarEntry(
  name: string,
  content: string | Buffer,
  type = '0',
  change: (block: Buffer) => void = () => undefined,
): Buffer {
  const body = Buffer.from(content);
  const header = {
    type: 'file',
    name: name.slice(0, 100),
    size: body.length,
    mode: 0o644,
    modifiedSeconds: 0,
  } as const;
  const block = Buffer.from(printTarHeader(header).subarray(-512));
  block.write(type, 156, 'latin1');
  change(block);
  block.fill(0x20, 148, 156);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([block, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

export const TAR_END = Buffer.alloc(1024);

/** Yields the bytes in pieces of `size` bytes. */
export async function* inPieces(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
