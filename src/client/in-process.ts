/**
 * The transport inside one process: calls the API's handler as a function. Requests and responses are still passed as
 * bytes, so that client and server share no mutable state and both transports behave alike.
 */
import { raceSignal } from '#lib/race-signal.ts';
import { jsonLines } from '#client/json-lines.ts';
import { TransportError, describeRequest, errorFromResponse, parseResponse } from '#client/transport.ts';
import type { Transport, TransportRequest, TransportResponse } from '#client/transport.ts';

/*
 * The types below repeat those of engine/request/request.ts, because a client must not depend on the engine. The compiler
 * compares them where the two are connected.
 */
interface InProcessUser {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface InProcessRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly user: InProcessUser;
  readonly accept: string;
  readonly contentType: string;
  readonly userAgent: string;
  readonly isLocal: true;
  body(): Promise<Buffer>;
  readonly signal: AbortSignal;
}

export interface InProcessSink {
  write(chunk: Buffer): void;
  readonly bufferedBytes: number;
  onDrain(fn: () => void): void;
  end(): void;
}

interface InProcessBytes {
  readonly status: number;
  readonly warnings?: readonly string[];
  readonly body: Buffer | readonly Buffer[];
}

interface InProcessStream {
  readonly status: number;
  readonly warnings?: readonly string[];
  stream(sink: InProcessSink): () => void;
}

interface InProcessUpgrade {
  readonly status: number;
  takeOver: unknown;
}

type InProcessResponse = InProcessBytes | InProcessStream | InProcessUpgrade;

export type InProcessHandler = (request: InProcessRequest) => InProcessResponse | Promise<InProcessResponse>;

interface InProcessOptions {
  readonly handler: InProcessHandler;
  readonly user: InProcessUser;
  readonly userAgent: string;
}

const NO_BYTES = Buffer.alloc(0);

export function createInProcessTransport({ handler, user, userAgent }: InProcessOptions): Transport {
  function call(request: TransportRequest, signal: AbortSignal) {
    const { method, path, query = new URLSearchParams(), accept = 'application/json' } = request;
    const bytes = request.body === undefined ? NO_BYTES : Buffer.from(JSON.stringify(request.body));
    const contentType = request.body === undefined ? '' : (request.contentType ?? 'application/json');
    const body = (): Promise<Buffer> => Promise.resolve(bytes);
    const isLocal = true as const;
    const received = { method, path, query, user, accept, contentType, userAgent, isLocal, body, signal };
    return raceSignal(Promise.resolve(handler(received)), signal);
  }

  return {
    async request(request): Promise<TransportResponse> {
      const what = describeRequest(request);
      request.signal?.throwIfAborted();
      const response = await call(request, request.signal ?? new AbortController().signal);
      if (!('body' in response)) throw new TransportError(`Cannot read the response to ${what}: it is a stream`);
      const text = decodeBody(response.body);
      if (response.status < 200 || response.status > 299) throw errorFromResponse(response.status, text);
      return { status: response.status, body: parseResponse(text, what), warnings: response.warnings ?? [] };
    },

    async *stream(request) {
      // As over a connection, the server sees the end of the request when the reader leaves.
      const controller = new AbortController();
      const onAbort = (): void => controller.abort(request.signal?.reason);
      request.signal?.throwIfAborted();
      request.signal?.addEventListener('abort', onAbort);
      const chunks = new ChunkQueue(controller.signal);
      let stop: (() => void) | undefined;
      try {
        const response = await call(request, controller.signal);
        if ('takeOver' in response) throw new TransportError('Cannot read the response: it is a connection');
        if ('stream' in response) stop = response.stream(chunks);
        else if (response.status < 200 || response.status > 299)
          throw errorFromResponse(response.status, decodeBody(response.body));
        else chunks.take(response.body);
        yield* jsonLines(chunks, { what: describeRequest(request), readLine: request.readLine });
      } finally {
        request.signal?.removeEventListener('abort', onAbort);
        stop?.();
        controller.abort();
      }
    },
  };
}

function decodeBody(body: Buffer | readonly Buffer[]): string {
  return (Buffer.isBuffer(body) ? body : Buffer.concat(body)).toString('utf8');
}

/** The chunks that the server has written and the reader has not consumed yet. */
class ChunkQueue implements InProcessSink, AsyncIterable<Buffer> {
  #chunks: Buffer[] = [];
  #ended = false;
  #wake: (() => void) | undefined;
  readonly #drainListeners: (() => void)[] = [];
  readonly #signal: AbortSignal;
  bufferedBytes = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  write(chunk: Buffer): void {
    if (this.#ended) return;
    this.#chunks.push(chunk);
    this.bufferedBytes += chunk.length;
    this.#wake?.();
  }

  onDrain(fn: () => void): void {
    if (this.bufferedBytes === 0) setImmediate(fn);
    else this.#drainListeners.push(fn);
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  take(body: Buffer | readonly Buffer[]): void {
    for (const chunk of Buffer.isBuffer(body) ? [body] : body) this.write(chunk);
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    const onAbort = (): void => this.#wake?.();
    this.#signal.addEventListener('abort', onAbort);
    try {
      for (;;) {
        this.#signal.throwIfAborted();
        const chunks = this.#chunks;
        if (chunks.length > 0) {
          this.#chunks = [];
          for (const chunk of chunks) {
            this.bufferedBytes -= chunk.length;
            yield chunk;
          }
          if (this.bufferedBytes === 0) for (const fn of this.#drainListeners.splice(0)) fn();
        } else if (this.#ended) {
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = undefined;
        }
      }
    } finally {
      this.#signal.removeEventListener('abort', onAbort);
    }
  }
}
