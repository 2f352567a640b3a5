/**
 * An HTTP/1.1 connection while its requests are plain (plain-head.ts): one at a time, each read completely, then answered
 * in one write. node's own server takes twice as long for this. At the first request that is not plain, the connection
 * is handed over to node's server, with all data that was read and not yet answered.
 *
 *   idle ──head──► reading ──complete──► answering ──► idle
 *     └────────────── not plain ─────────────────────► handed over
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { remoteEndOf, type RemoteEnd } from '#engine/http/connection-user.ts';
import type { Exchange } from '#engine/http/exchange.ts';
import { encodeResponse } from '#engine/http/plain/plain-response.ts';
import { plainHead, type KnownFields, type PlainHead } from '#engine/http/plain/plain-head.ts';
import { byteLength, writePieces } from '#engine/http/write-pieces.ts';
import { MAX_HEADER_BYTES } from '#engine/limits.ts';
import { newUid } from '#lib/ids.ts';

export interface PlainServer {
  serve(exchange: Exchange): void;
  /** Passes the connection to node's server. */
  handOver(socket: TLSSocket): void;
  /** Returns the current date in HTTP format. */
  date(): string;
}

/** A request whose body is not complete yet. */
interface PartialRequest {
  readonly head: PlainHead;
  readonly chunks: Buffer[];
  bytes: number;
}

const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');
/** Limit for requests that a client sends ahead of responses. */
const MAX_AHEAD_BYTES = 256 * 1024;
/** Limit for responses that a client leaves unread; further requests wait. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const NO_BYTES = Buffer.alloc(0);

export class PlainConnection {
  readonly #socket: TLSSocket;
  readonly #server: PlainServer;
  readonly #remoteEnd: RemoteEnd;
  /** Data that was read but is not part of a request yet. */
  #ahead: Buffer = NO_BYTES;
  #known: KnownFields | undefined;
  #reading: PartialRequest | undefined;
  #answering: PlainExchange | undefined;
  #isUnread = false;
  #stopping = false;
  /** Number of sweeps since a request began. */
  #quietSweeps = 0;

  constructor(socket: TLSSocket, server: PlainServer) {
    this.#socket = socket;
    this.#server = server;
    this.#remoteEnd = remoteEndOf(socket);
    socket.setNoDelay(true);
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
  }

  /** Finishes the current request, then closes the connection. */
  stop(): void {
    this.#stopping = true;
    if (this.#answering === undefined) this.#socket.destroySoon();
  }

  /** Called periodically. Closes idle connections and those that do not finish a request. */
  sweep(maxQuietSweeps: number): void {
    if (this.#answering === undefined && ++this.#quietSweeps > maxQuietSweeps) this.#socket.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    const reading = this.#reading;
    if (reading !== undefined) {
      this.#readMore(reading, chunk);
      return;
    }
    this.#ahead = this.#ahead.length === 0 ? chunk : Buffer.concat([this.#ahead, chunk]);
    if (this.#isIdle) this.#next();
    else if (this.#ahead.length > MAX_AHEAD_BYTES) this.#socket.pause();
  };

  get #isIdle(): boolean {
    return this.#answering === undefined && this.#reading === undefined && !this.#isUnread;
  }

  /** Starts the first request in the data that was read. */
  #next(): void {
    const bytes = this.#ahead;
    if (bytes.length === 0) return;
    const end = bytes.indexOf(HEAD_END);
    const plain =
      end < 0 || end > MAX_HEADER_BYTES ? undefined : plainHead(bytes.toString('latin1', 0, end), this.#known);
    if (plain === undefined) {
      this.#handOver(bytes);
      return;
    }
    const { head, fields } = plain;
    this.#known = fields;
    // Not reset with each chunk: a client that sends a body byte by byte would never time out.
    this.#quietSweeps = 0;
    const bodyStart = end + HEAD_END.length;
    const bodyEnd = bodyStart + head.bodyBytes;
    if (bytes.length >= bodyEnd) {
      this.#ahead = bytes.length === bodyEnd ? NO_BYTES : bytes.subarray(bodyEnd);
      this.#answer(head, head.bodyBytes === 0 ? NO_BYTES : bytes.subarray(bodyStart, bodyEnd));
      return;
    }
    this.#ahead = NO_BYTES;
    const begun = bytes.subarray(bodyStart);
    this.#reading = { head, chunks: [begun], bytes: begun.length };
  }

  #readMore(reading: PartialRequest, chunk: Buffer): void {
    const missing = reading.head.bodyBytes - reading.bytes;
    if (chunk.length < missing) {
      reading.chunks.push(chunk);
      reading.bytes += chunk.length;
      return;
    }
    this.#reading = undefined;
    this.#ahead = chunk.length === missing ? NO_BYTES : chunk.subarray(missing);
    reading.chunks.push(chunk.length === missing ? chunk : chunk.subarray(0, missing));
    this.#answer(reading.head, Buffer.concat(reading.chunks, reading.head.bodyBytes));
  }

  #answer(head: PlainHead, body: Buffer): void {
    const exchange = new PlainExchange(this.#socket, this.#remoteEnd, head, body, this.#server, this.#answered);
    this.#answering = exchange;
    this.#server.serve(exchange);
  }

  readonly #answered = (): void => {
    this.#answering = undefined;
    this.#quietSweeps = 0;
    if (this.#stopping) {
      this.#socket.destroySoon();
      return;
    }
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) {
      this.#isUnread = true;
      this.#socket.pause().once('drain', this.#read);
      return;
    }
    if (this.#socket.isPaused()) this.#socket.resume();
    // Deferred, so that a client that sends many requests ahead does not cause unbounded recursion.
    if (this.#ahead.length > 0) setImmediate(this.#continue);
  };

  readonly #read = (): void => {
    this.#isUnread = false;
    this.#socket.resume();
    this.#continue();
  };

  readonly #continue = (): void => {
    if (this.#isIdle && !this.#socket.destroyed) this.#next();
  };

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.off('end', this.#onEnd);
    socket.off('error', this.#onError);
    socket.off('close', this.#onClose);
    socket.pause();
    socket.unshift(bytes);
    this.#server.handOver(socket);
    // Before anything else is read, because the returned data must come first.
    socket.resume();
  }

  readonly #onEnd = (): void => {
    if (this.#answering === undefined) this.#socket.destroySoon();
    else this.#stopping = true;
  };

  /** A client that disconnects early is not an error of the server. */
  readonly #onError = (): void => {};

  readonly #onClose = (): void => {
    this.#answering?.closed();
    this.#answering = undefined;
  };
}

class PlainExchange implements Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: PlainHead['headers'];
  readonly peer: RemoteEnd['peer'];
  readonly sourceIp: string | undefined;
  readonly auditId = newUid();
  readonly #socket: TLSSocket;
  readonly #body: Buffer;
  readonly #server: PlainServer;
  readonly #answered: () => void;
  #closing: (() => void)[] | undefined;
  #isOver = false;
  #hasHead = false;

  constructor(
    socket: TLSSocket,
    { peer, sourceIp }: RemoteEnd,
    { method, url, headers }: PlainHead,
    body: Buffer,
    server: PlainServer,
    answered: () => void,
  ) {
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.peer = peer;
    this.sourceIp = sourceIp;
    this.#socket = socket;
    this.#body = body;
    this.#server = server;
    this.#answered = answered;
  }

  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  body(): Promise<Buffer> {
    return Promise.resolve(this.#body);
  }

  bodyStream(): Readable {
    return Readable.from(this.#body.length === 0 ? [] : [this.#body]);
  }

  onClose(fn: () => void): void {
    if (this.#isOver) setImmediate(fn);
    else (this.#closing ??= []).push(fn);
  }

  respond(status: number, headers: Record<string, string | string[]>, body: readonly Buffer[]): void {
    if (this.#socket.destroyed || this.#hasHead) return;
    this.#hasHead = true;
    const head = { status, headers, auditId: this.auditId, date: this.#server.date() };
    const bytes = encodeResponse(head, body, byteLength(body));
    if (bytes.length === 1) {
      this.#socket.write(bytes[0]!);
      this.#end();
    } else writePieces(this.#socket, bytes, () => this.#end());
  }

  /** Streams are sent in chunks by node's ServerResponse, and the connection ends with them. */
  startStream(headers: Record<string, string | string[]>): ServerResponse {
    this.#hasHead = true;
    const request = new IncomingMessage(this.#socket);
    request.method = this.method;
    request.httpVersionMajor = 1;
    request.httpVersionMinor = 1;
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(this.#socket);
    const drained = () => void response.emit('drain');
    this.#socket.on('drain', drained);
    response.once('close', () => this.closed());
    response.once('finish', () => {
      this.#socket.off('drain', drained);
      this.#socket.destroySoon();
    });
    response.writeHead(200, { 'audit-id': this.auditId, ...headers });
    response.flushHeaders();
    return response;
  }

  /** Called when the connection is closed or the response is complete. */
  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const fn of this.#closing ?? []) fn();
  }

  #end(): void {
    this.closed();
    this.#answered();
  }
}
