/** Reads bodies of responses, bounded in size and time. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '#lib/clock.ts';
import { BodyTooLargeError, HttpsTimeoutError } from '#lib/https/https-error.ts';

/** Reads a body to its end. Throws BodyTooLargeError, or the error that broke the connection. */
export async function readBody(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new BodyTooLargeError(maxBytes);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes);
}

/** Like readBody, and throws HttpsTimeoutError if the body is not complete in time. */
export async function readBodyWithin(
  incoming: IncomingMessage,
  { maxBytes, timeoutMs, clock }: { readonly maxBytes: number; readonly timeoutMs: number; readonly clock: Clock },
): Promise<Buffer> {
  const stopTimer = clock.after(timeoutMs, () => incoming.destroy(new HttpsTimeoutError('body', timeoutMs)));
  try {
    return await readBody(incoming, maxBytes);
  } finally {
    stopTimer();
  }
}

/** Reads the beginning of a body that is normally short, such as an error message. */
export async function readBodyStart(incoming: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
