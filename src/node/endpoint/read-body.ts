/** The body of a request, whole and bounded. */
import type { IncomingMessage } from 'node:http';
import { badRequest, tooLarge } from '#kube/api-error.ts';

/** Throws ApiError where it is larger, or breaks off. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const refusal = () => tooLarge(`the body of the request is larger than ${maxBytes} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw refusal();
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Not destroyed when it is left early: the refusal is still to be sent.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw badRequest(`the body of the request broke off: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (bytes > maxBytes) throw refusal();
  return Buffer.concat(chunks);
}
