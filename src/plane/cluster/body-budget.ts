/** Limits the request bodies in memory, each and all together, because any client may send them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tooLarge, tooManyRequests } from '#kube/api-error.ts';

export interface BodyLimits {
  readonly oneBytes: number;
  readonly allBytes: number;
}

export class BodyBudget {
  readonly #limits: BodyLimits;
  #held = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Reads the whole body, which counts until the response is sent. Throws ApiError. */
  async read(request: IncomingMessage, response: ServerResponse): Promise<Buffer> {
    const { oneBytes, allBytes } = this.#limits;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const release = () => {
      this.#held -= bytes;
      bytes = 0;
    };
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        this.#held += chunk.length;
        if (bytes > oneBytes) throw tooLarge(`the body is larger than ${oneBytes} bytes`);
        if (this.#held > allBytes) throw tooManyRequests('too many request bodies are in progress', 1);
        chunks.push(chunk);
      }
    } catch (error) {
      release();
      throw error;
    }
    // The client may have disconnected meanwhile.
    if (response.closed) release();
    else response.once('close', release);
    return Buffer.concat(chunks);
  }
}
