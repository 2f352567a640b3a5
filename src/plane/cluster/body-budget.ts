/** Bodies of requests in memory: each is bounded, and so are all of them together, because anybody may send some. */
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

  /** All of it; it counts until the request is answered. Throws ApiError. */
  async read(request: IncomingMessage, response: ServerResponse): Promise<Buffer> {
    const { oneBytes, allBytes } = this.#limits;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const give = () => {
      this.#held -= bytes;
      bytes = 0;
    };
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        this.#held += chunk.length;
        if (bytes > oneBytes) throw tooLarge(`the body is larger than ${oneBytes} bytes`);
        if (this.#held > allBytes) throw tooManyRequests('too many bodies are under way', 1);
        chunks.push(chunk);
      }
    } catch (error) {
      give();
      throw error;
    }
    // Whoever asked may be gone by now.
    if (response.closed) give();
    else response.once('close', give);
    return Buffer.concat(chunks);
  }
}
