/**
 * A minimal HTTP/1.1 client with one connection kept alive and one request in flight, for the same reason as raw-h2.ts.
 * Reads answers with a Content-Length only, and fails loudly when it meets another.
 */
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import type { Fields, Method } from './hpack.ts';
import type { Connection, Receiver, Target } from './raw-h2.ts';

const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');

export class RawConnection1 implements Connection {
  readonly #socket: Duplex;
  readonly #head: string;
  #receiver: Receiver | undefined;
  #rest: Buffer | undefined;
  #status = 0;
  /** Bytes of the body that have not come yet; undefined between answers. */
  #left: number | undefined;
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
    if (this.#left === undefined) {
      const end = bytes.indexOf(HEAD_END);
      if (end < 0) {
        this.#rest = bytes;
        return;
      }
      this.#readHead(bytes.toString('latin1', 0, end));
      bytes = bytes.subarray(end + HEAD_END.length);
    }
    this.#left! -= bytes.length;
    if (this.#left! < 0) throw new Error('Cannot read an answer that nobody asked for');
    if (bytes.length > 0) this.#receiver?.onData?.(bytes);
    if (this.#left === 0) this.#finish();
  }

  #readHead(head: string): void {
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length === null) throw new Error('Cannot read an answer without a Content-Length');
    this.#left = Number(length[1]);
    this.#receiver?.onStatus?.(this.#status);
  }

  #finish(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#left = undefined;
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
