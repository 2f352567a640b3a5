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

/** Writes the pieces and ends the stream. Returns a function for the number of pieces written so far. */
export function writePieces(stream: Writable, pieces: readonly Buffer[]): () => number {
  let next = 0;
  const send = () => {
    while (next < pieces.length && !stream.destroyed) {
      const slab = nextSlab();
      if (next === pieces.length) {
        stream.end(slab);
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
  else stream.end();
  return () => next;
}
