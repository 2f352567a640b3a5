/**
 * Writes many small buffers as few larger ones, as fast as the reader accepts them, so that a list is never copied as a
 * whole.
 */
import type { Writable } from 'node:stream';

/** Large enough to make the cost per call negligible, small enough for its memory to be reused at once. */
const SLAB_BYTES = 128 * 1024;

export function byteLength(pieces: readonly Buffer[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return length;
}

/** Calls `sent` after the last piece was written, or ends the stream if there is no callback. */
export function writePieces(stream: Writable, pieces: readonly Buffer[], sent?: () => void): void {
  let next = 0;
  const send = () => {
    while (next < pieces.length && !stream.destroyed) {
      const slab = nextSlab();
      if (next === pieces.length) {
        if (sent === undefined) stream.end(slab);
        else {
          stream.write(slab);
          sent();
        }
        return;
      }
      if (!stream.write(slab)) {
        stream.once('drain', send);
        return;
      }
    }
  };
  const nextSlab = (): Buffer => {
    const first = next;
    let size = 0;
    while (next < pieces.length && (next === first || size + pieces[next]!.length <= SLAB_BYTES))
      size += pieces[next++]!.length;
    return next - first === 1 ? pieces[first]! : Buffer.concat(pieces.slice(first, next), size);
  };
  if (pieces.length > 0) send();
  else if (sent === undefined) stream.end();
  else sent();
}
