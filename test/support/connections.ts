/** The open connections of clients to a server of this process, which a test can break. */
import type { ApiHandler, StreamSink } from '#engine/request/request.ts';

export class Connections {
  readonly #broken = Promise.withResolvers<never>();
  readonly #streams = new Set<StreamSink>();
  #isBroken = false;

  constructor() {
    this.#broken.promise.catch(() => {});
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  wrap(handler: ApiHandler): ApiHandler {
    return async (request) => {
      if (this.#isBroken) return await this.#broken.promise;
      const response = await Promise.race([this.#broken.promise, handler(request)]);
      return 'stream' in response
        ? { ...response, stream: (sink) => this.#trackStream(response.stream, sink) }
        : response;
    };
  }

  /** Breaks all connections: pending requests fail and streams end. */
  breakAll(): void {
    this.#isBroken = true;
    this.#broken.reject(new Error('the connection is broken'));
    for (const sink of this.#streams) sink.end();
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
