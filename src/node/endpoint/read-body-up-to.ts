/** Reads the whole body of a request, with a limit. */
import type { IncomingMessage } from 'node:http';
import { badRequest, tooLarge } from '#kube/api-error.ts';
import { errorMessage } from '#lib/error-message.ts';

/** Throws ApiError if the body is too large or incomplete. */
export async function readBodyUpTo(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const refusal = () => tooLarge(`the body of the request is larger than ${maxBytes} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw refusal();
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // The request must not be destroyed after an early exit, because the error is still to be sent.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw badRequest(`the body of the request is incomplete: ${errorMessage(error)}`);
  }
  if (bytes > maxBytes) throw refusal();
  return Buffer.concat(chunks);
}
