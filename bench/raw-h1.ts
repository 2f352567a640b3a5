/**
 * A minimal HTTP/1.1 client with one persistent connection and one request in flight, for the same reason as raw-h2.ts.
 * Reads responses with a Content-Length or in chunks without trailers, and throws for any other.
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
  /** The part of the response that is expected next. */
  #state: 'head' | 'body' | 'first chunk' | 'next chunk' | 'chunk' = 'head';
  /** Bytes of the body or chunk that have not arrived yet. */
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
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', () => this.#end());
    socket.on('close', () => this.#end());
  }

  request(method: Method, path: string, body: Buffer | undefined, receiver: Receiver): void {
    if (this.#receiver !== undefined) throw new Error('Cannot send a request before the response to the previous one');
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

  #receive(chunk: Buffer): void {
    let bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    for (;;) {
      const consumed = this.#consume(bytes);
      if (consumed === 0) {
        this.#rest = bytes;
        return;
      }
      if (consumed === bytes.length) return;
      bytes = bytes.subarray(consumed);
    }
  }

  /** Returns the number of bytes that were consumed; 0 if more bytes are needed. */
  #consume(bytes: Buffer): number {
    if (this.#receiver === undefined) throw new Error('Cannot read a response: there was no request');
    switch (this.#state) {
      case 'head':
        return this.#consumeHead(bytes);
      case 'first chunk':
        return this.#consumeChunkHead(bytes, 0);
      case 'next chunk':
        return this.#consumeChunkHead(bytes, LINE_END.length);
      default:
        return this.#consumeData(bytes);
    }
  }

  #consumeHead(bytes: Buffer): number {
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) return 0;
    const head = bytes.toString('latin1', 0, end);
    this.#status = Number(head.slice(9, 12));
    this.#receiver?.onStatus?.(this.#status);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) this.#expectData('body', Number(length));
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#state = 'first chunk';
    else throw new Error('Cannot read a response that has no Content-Length and is not chunked');
    return end + HEAD_END.length;
  }

  #consumeChunkHead(bytes: Buffer, from: number): number {
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

  #consumeData(bytes: Buffer): number {
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
