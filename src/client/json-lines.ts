/** Splits a byte stream into JSON lines: watches. The length of a line is bounded, so that no server fills our memory. */
import { TransportError, parseAnswer, type TransportRequest } from '#client/transport.ts';

export const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

interface JsonLinesOptions {
  readonly what: string;
  readonly readLine?: TransportRequest['readLine'];
  readonly maxLineBytes?: number;
}

/**
 * Yields each line parsed. A stream that ends inside a line throws: the rest of it never came, and what did come
 * could be valid JSON by chance.
 */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  { what, readLine, maxLineBytes = MAX_LINE_BYTES }: JsonLinesOptions,
): AsyncGenerator<unknown, void, undefined> {
  let head: Buffer[] = [];
  let headBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      if (headBytes + end - start > maxLineBytes) throw tooLongLine(what, maxLineBytes);
      const line = joined(head, chunk, start, end);
      head = [];
      headBytes = 0;
      start = end + 1;
      if (line !== '') yield parseAnswer(line, what, readLine);
    }
    if (start === chunk.length) continue;
    head.push(start === 0 ? chunk : chunk.subarray(start));
    headBytes += chunk.length - start;
    if (headBytes > maxLineBytes) throw tooLongLine(what, maxLineBytes);
  }
  if (headBytes > 0) throw new TransportError(`Cannot read the answer to ${what}: it ended inside a line`);
}

/** Decoded only as a whole: a chunk may end inside a character. */
function joined(head: Buffer[], chunk: Buffer, start: number, end: number): string {
  if (head.length === 0) return chunk.toString('utf8', start, end).trim();
  return Buffer.concat([...head, chunk.subarray(start, end)])
    .toString('utf8')
    .trim();
}

function tooLongLine(what: string, maxLineBytes: number): TransportError {
  return new TransportError(`Cannot read the answer to ${what}: a line is longer than ${maxLineBytes} bytes`);
}
