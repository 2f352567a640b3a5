/**
 * A minimal HTTP/1.1 client with one connection kept alive and one request in flight, for the same reason as raw-h2.ts.
 * Reads answers with a Content-Length or in chunks without trailers, and fails loudly when it meets another.
 */
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import type { Fields, Method } from './hpack.ts';
import type { Connection, Receiver, Target } from './raw-h2.ts';

const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');
const LINE_END = Buffer.from('\r\n', 'latin1');

export class RawConnection1 implements Connection {
  readonly #socket: Duplex;
  readonly #head: string;
  #receiver: Receiver | undefined;
  #rest: Buffer | undefined;
  #status = 0;
  /** What comes next. */
  #state: 'head' | 'body' | 'first chunk' | 'next chunk' | 'chunk' = 'head';
  /** Bytes of the body, or of the chunk, that have not come yet. */
  #left = 0;
  #closed = false;

  static connect({ host, port, ca, cert, key }: Target, fields: Fields): Promise<RawConnection1> {
    return new Promise((resolve, reject) => {
      const socket: TLSSocket = connect({ host, port, ca, cert, key, ALPNProtocols: ['http/1.1'] }, () => {
        socket.off('error', reject);
        resolve(new RawConnection1(socket, `${host}:${port}`, fields));
      });
      socket.setNoDelay(true);
      socket.once('error', reject);
    });
  }

  constructor(socket: Duplex, authority: string, fields: Fields) {
    this.#socket = socket;
    const lines = Object.entries({ host: authority, ...fields }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#head = ` HTTP/1.1\r\n${lines.join('')}`;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', () => this.#end());
    socket.on('close', () => this.#end());
  }

  request(method: Method, path: string, body: Buffer | undefined, receiver: Receiver): void {
    if (this.#receiver !== undefined) throw new Error('Cannot send a second request before the first is answered');
    if (this.#closed) {
      receiver.onEnd(0);
      return;
    }
    this.#receiver = receiver;
    const length = body === undefined ? '' : `content-length: ${body.length}\r\n`;
    const head = Buffer.from(`${method} ${path}${this.#head}${length}\r\n`, 'latin1');
    this.#socket.write(body === undefined ? head : Buffer.concat([head, body]));
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    let bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    for (;;) {
      const taken = this.#takeFirst(bytes);
      if (taken === 0) {
        this.#rest = bytes;
        return;
      }
      if (taken === bytes.length) return;
      bytes = bytes.subarray(taken);
    }
  }

  /** How many bytes it could use; 0 = more have to come. */
  #takeFirst(bytes: Buffer): number {
    if (this.#receiver === undefined) throw new Error('Cannot read an answer that nobody asked for');
    switch (this.#state) {
      case 'head':
        return this.#takeHead(bytes);
      case 'first chunk':
        return this.#takeChunkHead(bytes, 0);
      case 'next chunk':
        return this.#takeChunkHead(bytes, LINE_END.length);
      default:
        return this.#takeData(bytes);
    }
  }

  #takeHead(bytes: Buffer): number {
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) return 0;
    const head = bytes.toString('latin1', 0, end);
    this.#status = Number(head.slice(9, 12));
    this.#receiver?.onStatus?.(this.#status);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) this.#expectData('body', Number(length));
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#state = 'first chunk';
    else throw new Error('Cannot read an answer without a Content-Length, and not in chunks');
    return end + HEAD_END.length;
  }

  #takeChunkHead(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LINE_END, from);
    if (end < 0) return 0;
    const length = Number.parseInt(bytes.toString('latin1', from, end), 16);
    if (length > 0) {
      this.#expectData('chunk', length);
      return end + LINE_END.length;
    }
    if (bytes.length < end + HEAD_END.length) return 0;
    this.#finish();
    return end + HEAD_END.length;
  }

  #expectData(state: 'body' | 'chunk', bytes: number): void {
    this.#state = state;
    this.#left = bytes;
    if (bytes === 0) this.#finish();
  }

  #takeData(bytes: Buffer): number {
    const data = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= data.length;
    this.#receiver?.onData?.(data);
    if (this.#left > 0) return data.length;
    if (this.#state === 'body') this.#finish();
    else this.#state = 'next chunk';
    return data.length;
  }

  #finish(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#state = 'head';
    receiver?.onEnd(this.#status);
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    const receiver = this.#receiver;
    this.#receiver = undefined;
    receiver?.onEnd(0);
  }
}
