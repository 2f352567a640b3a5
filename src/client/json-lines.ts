/** Splits a stream of bytes, such as a watch, into JSON lines. Limits the length of a line to bound the memory. */
import { TransportError, parseResponse, type TransportRequest } from '#client/transport.ts';

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

interface JsonLinesOptions {
  readonly what: string;
  readonly readLine?: TransportRequest['readLine'];
  readonly maxLineBytes?: number;
}

/**
 * Yields each parsed line. Throws if the stream ends inside a line, because the received part could be valid JSON by
 * chance.
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
      if (headBytes + end - start > maxLineBytes) throw lineTooLongError(what, maxLineBytes);
      const line = decodeLine(head, chunk, start, end);
      head = [];
      headBytes = 0;
      start = end + 1;
      if (line !== '') yield parseResponse(line, what, readLine);
    }
    if (start === chunk.length) continue;
    head.push(start === 0 ? chunk : chunk.subarray(start));
    headBytes += chunk.length - start;
    if (headBytes > maxLineBytes) throw lineTooLongError(what, maxLineBytes);
  }
  if (headBytes > 0) throw new TransportError(`Cannot read the response to ${what}: it ended inside a line`);
}

/** Decodes a line as a whole, because a chunk may end inside a character. */
function decodeLine(head: Buffer[], chunk: Buffer, start: number, end: number): string {
  if (head.length === 0) return chunk.toString('utf8', start, end).trim();
  return Buffer.concat([...head, chunk.subarray(start, end)])
    .toString('utf8')
    .trim();
}

function lineTooLongError(what: string, maxLineBytes: number): TransportError {
  return new TransportError(`Cannot read the response to ${what}: a line is longer than ${maxLineBytes} bytes`);
}
