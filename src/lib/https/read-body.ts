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

interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Like readBody, and throws HttpsTimeoutError if the body is not complete in time. */
export async function readBodyWithin(incoming: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  return await withinTime(incoming, limits, () => readBody(incoming, limits.maxBytes));
}

/** Reads the beginning of a body that is normally short, such as an error message. Throws HttpsTimeoutError. */
export async function readBodyStart(incoming: IncomingMessage, limits: BodyLimits): Promise<string> {
  return await withinTime(incoming, limits, async () => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > limits.maxBytes) break;
    }
    return Buffer.concat(chunks).toString('utf8');
  });
}

async function withinTime<T>(
  incoming: IncomingMessage,
  { timeoutMs, clock }: BodyLimits,
  read: () => Promise<T>,
): Promise<T> {
  const stopTimer = clock.after(timeoutMs, () => incoming.destroy(new HttpsTimeoutError('body', timeoutMs)));
  try {
    return await read();
  } finally {
    stopTimer();
  }
}
