/** What clients have open to a server of this process, so that a test can break it off. */
import type { ApiHandler, StreamSink } from '#engine/request.ts';

export class Connections {
  readonly #lost = Promise.withResolvers<never>();
  readonly #streams = new Set<StreamSink>();
  #isLost = false;

  constructor() {
    this.#lost.promise.catch(() => {});
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  through(handler: ApiHandler): ApiHandler {
    return async (request) => {
      if (this.#isLost) return await this.#lost.promise;
      const answer = await Promise.race([this.#lost.promise, handler(request)]);
      return 'stream' in answer ? { ...answer, stream: (sink) => this.#follow(answer.stream, sink) } : answer;
    };
  }

  /** Whoever waits for an answer gets none; streams end. */
  lose(): void {
    this.#isLost = true;
    this.#lost.reject(new Error('the connection is lost'));
    for (const sink of this.#streams) sink.end();
  }

  #follow(stream: (sink: StreamSink) => () => void, sink: StreamSink): () => void {
    // Lost while the answer was on its way.
    if (this.#isLost) sink.end();
    this.#streams.add(sink);
    const stop = stream(sink);
    return () => {
      this.#streams.delete(sink);
      stop();
    };
  }
}
