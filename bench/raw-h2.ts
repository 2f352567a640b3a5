/**
 * A minimal HTTP/2 client, so that a benchmark measures the server and not a general-purpose client. Receives without
 * limits and answers SETTINGS and PING. Does not support push, padding and continuations, and throws if it receives
 * one.
 */
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { RequestEncoder, StatusReader, type Fields, type Method } from './hpack.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** The server process, for its CPU time; undefined if it is not ours. */
  readonly pid: number | undefined;
}

/** Receives the response to one request. The chunks are views that are valid only during the call. */
export interface Receiver {
  onStatus?(status: number): void;
  onData?(chunk: Buffer): void;
  /** Called with status 0 if the stream was reset or the connection ended. */
  onEnd(status: number): void;
}

/** A connection of a client, for any protocol. */
export interface Connection {
  request(method: Method, path: string, body: Buffer | undefined, receiver: Receiver): void;
  close(): void;
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const FRAME_HEADER = 9;
const MAX_FRAME = 16_384;
const MAX_WINDOW = 2 ** 31 - 1;
const DEFAULT_WINDOW = 65_535;

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const PADDED = 8;
const PRIORITY = 32;

interface Stream {
  readonly receiver: Receiver;
  status: number;
}

export class RawConnection implements Connection {
  readonly #socket: Duplex;
  readonly #encoder: RequestEncoder;
  readonly #statuses = new StatusReader();
  readonly #streams = new Map<number, Stream>();
  #nextStream = 1;
  #rest: Buffer | undefined;
  #dataStream = 0;
  #dataLeft = 0;
  #dataEnds = false;
  #received = 0;
  #closed = false;

  static connect(target: Target, fields: Fields): Promise<RawConnection> {
    const { host, port, ca, cert, key } = target;
    return new Promise((resolve, reject) => {
      const socket: TLSSocket = connect({ host, port, ca, cert, key, ALPNProtocols: ['h2'] }, () => {
        socket.off('error', reject);
        if (socket.alpnProtocol === 'h2') resolve(new RawConnection(socket, `${host}:${port}`, fields));
        else reject(new Error(`Cannot measure ${host}:${port}: it does not support HTTP/2`));
      });
      socket.setNoDelay(true);
      socket.once('error', reject);
    });
  }

  constructor(socket: Duplex, authority: string, fields: Fields) {
    this.#socket = socket;
    this.#encoder = new RequestEncoder(authority, fields);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', () => this.#end());
    socket.on('close', () => this.#end());
    const settings = frame(SETTINGS, 0, 0, 12);
    settings.writeUInt16BE(2, FRAME_HEADER); // ENABLE_PUSH = 0
    settings.writeUInt16BE(4, FRAME_HEADER + 6); // INITIAL_WINDOW_SIZE
    settings.writeUInt32BE(MAX_WINDOW, FRAME_HEADER + 8);
    socket.write(Buffer.concat([PREFACE, settings, windowUpdate(MAX_WINDOW - DEFAULT_WINDOW)]));
  }

  request(method: Method, path: string, body: Buffer | undefined, receiver: Receiver): void {
    if (body !== undefined && body.length > MAX_FRAME) throw new RangeError(`Cannot send over ${MAX_FRAME} bytes`);
    if (this.#closed) {
      receiver.onEnd(0);
      return;
    }
    const id = this.#nextStream;
    this.#nextStream += 2;
    this.#streams.set(id, { receiver, status: 0 });
    const block = this.#encoder.encode(method, path, body?.length);
    const bytes = Buffer.allocUnsafe(FRAME_HEADER + block.length + (body ? FRAME_HEADER + body.length : 0));
    writeHeader(bytes, 0, block.length, HEADERS, body ? END_HEADERS : END_HEADERS | END_STREAM, id);
    block.copy(bytes, FRAME_HEADER);
    if (body) {
      writeHeader(bytes, FRAME_HEADER + block.length, body.length, DATA, END_STREAM, id);
      body.copy(bytes, 2 * FRAME_HEADER + block.length);
    }
    this.#socket.write(bytes);
  }

  /** Sends a request and returns the whole response, for requests that are not measured. */
  exchange(method: Method, path: string, body?: Buffer): Promise<RawResponse> {
    return exchange(this, method, path, body);
  }

  close(): void {
    this.#socket.destroy();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    const open = [...this.#streams.values()];
    this.#streams.clear();
    for (const { receiver } of open) receiver.onEnd(0);
  }

  /** Passes on DATA as it arrives; waits for the end of other frames, which are short. */
  #receive(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    let at = 0;
    for (;;) {
      if (this.#dataLeft > 0) {
        const end = Math.min(bytes.length, at + this.#dataLeft);
        if (end === at) return;
        this.#dataLeft -= end - at;
        this.#streams.get(this.#dataStream)?.receiver.onData?.(bytes.subarray(at, end));
        at = end;
        if (this.#dataLeft > 0) return;
        if (this.#dataEnds) this.#finish(this.#dataStream);
      }
      const header = at + FRAME_HEADER;
      const length = header <= bytes.length ? bytes.readUIntBE(at, 3) : 0;
      const type = bytes[at + 3];
      if (header > bytes.length || (type !== DATA && header + length > bytes.length)) {
        if (at < bytes.length) this.#rest = bytes.subarray(at);
        return;
      }
      const flags = bytes[at + 4]!;
      const stream = bytes.readUInt32BE(at + 5);
      at = header;
      if (type === DATA) this.#startData(length, flags, stream);
      else this.#receiveControl(type!, flags, stream, bytes.subarray(at, (at += length)));
    }
  }

  #startData(length: number, flags: number, stream: number): void {
    if (flags & PADDED) throw new Error('Cannot read a padded frame');
    this.#dataStream = stream;
    this.#dataLeft = length;
    this.#dataEnds = (flags & END_STREAM) !== 0;
    this.#received += length;
    if (this.#received > MAX_WINDOW / 4) {
      this.#socket.write(windowUpdate(this.#received));
      this.#received = 0;
    }
    if (length === 0 && this.#dataEnds) this.#finish(stream);
  }

  #receiveControl(type: number, flags: number, id: number, payload: Buffer): void {
    if (type === HEADERS) this.#receiveHeaders(flags, id, payload);
    else if (type === SETTINGS && !(flags & ACK)) this.#socket.write(frame(SETTINGS, ACK, 0, 0));
    else if (type === PING && !(flags & ACK)) this.#socket.write(pong(payload));
    else if (type === RST_STREAM) this.#finish(id, 0);
    else if (type === GOAWAY) this.#socket.destroy();
    else if (type === CONTINUATION) throw new Error('Cannot read a continuation frame');
  }

  #receiveHeaders(flags: number, id: number, payload: Buffer): void {
    if (!(flags & END_HEADERS) || flags & PADDED) throw new Error('Cannot read headers in more than one frame');
    const status = this.#statuses.read(flags & PRIORITY ? payload.subarray(5) : payload);
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (status !== 0) {
      stream.status = status;
      stream.receiver.onStatus?.(status);
    }
    if (flags & END_STREAM) this.#finish(id);
  }

  #finish(id: number, status?: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.#streams.delete(id);
    stream.receiver.onEnd(status ?? stream.status);
  }
}

export interface RawResponse {
  readonly status: number;
  readonly body: Buffer;
}

export function exchange(connection: Connection, method: Method, path: string, body?: Buffer): Promise<RawResponse> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    connection.request(method, path, body, {
      onData: (chunk) => void chunks.push(Buffer.from(chunk)),
      onEnd: (status) => resolve({ status, body: Buffer.concat(chunks) }),
    });
  });
}

function frame(type: number, flags: number, stream: number, length: number): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER + length);
  writeHeader(bytes, 0, length, type, flags, stream);
  return bytes;
}

function writeHeader(bytes: Buffer, at: number, length: number, type: number, flags: number, stream: number): void {
  bytes.writeUIntBE(length, at, 3);
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes.writeUInt32BE(stream, at + 5);
}

function pong(payload: Buffer): Buffer {
  const bytes = frame(PING, ACK, 0, payload.length);
  payload.copy(bytes, FRAME_HEADER);
  return bytes;
}

function windowUpdate(increment: number): Buffer {
  const bytes = frame(WINDOW_UPDATE, 0, 0, 4);
  bytes.writeUInt32BE(increment, FRAME_HEADER);
  return bytes;
}
