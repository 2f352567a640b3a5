/** The open connections of clients to a server of this process, which a test can break. */
import type { ApiHandler, StreamSink } from '#engine/request/request.ts';

export class Connections {
  /** Rejects the requests in progress. Not one promise for all requests: it would keep the response of each. */
  readonly #pending = new Set<(error: Error) => void>();
  readonly #streams = new Set<StreamSink>();
  #isBroken = false;

  get isBroken(): boolean {
    return this.#isBroken;
  }

  wrap(handler: ApiHandler): ApiHandler {
    return async (request) => {
      if (this.#isBroken) throw brokenConnection();
      const response = await this.#untilBroken(handler(request));
      return 'stream' in response
        ? { ...response, stream: (sink) => this.#trackStream(response.stream, sink) }
        : response;
    };
  }

  /** Breaks all connections: pending requests fail and streams end. */
  breakAll(): void {
    this.#isBroken = true;
    for (const reject of this.#pending) reject(brokenConnection());
    for (const sink of this.#streams) sink.end();
  }

  async #untilBroken<T>(answer: T | Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#pending.add(reject);
    Promise.resolve(answer).then(resolve, reject);
    try {
      return await promise;
    } finally {
      this.#pending.delete(reject);
    }
  }

  #trackStream(stream: (sink: StreamSink) => () => void, sink: StreamSink): () => void {
    // The connection broke while the response was on its way.
    if (this.#isBroken) sink.end();
    this.#streams.add(sink);
    const stop = stream(sink);
    return () => {
      this.#streams.delete(sink);
      stop();
    };
  }
}

const brokenConnection = () => new Error('the connection is broken');
