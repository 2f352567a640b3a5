/** Serves a stream of a guest as a WebSocket with binary frames: KubeVirt's `plain.kubevirt.io`. */
import { PLAIN_STREAM_PROTOCOL } from '#api/names.ts';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { badRequest } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';
import { CLOSE_CODES } from '#lib/websocket-frames.ts';
import { serverHandshake } from '#lib/websocket-handshake.ts';
import { WebSocketStream } from '#lib/websocket.ts';
import { headerText } from '#node/endpoint/header-text.ts';

const KEEP_ALIVE_MS = 30_000;
/** Time for the guest to receive the last data of its client. */
const CLOSE_TIMEOUT_MS = 5000;

export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

export interface PlainStream {
  /** Kind of the stream for logs and errors, for example `console`. */
  readonly what: string;
  /** Rejects with ApiError. */
  open(): Promise<Duplex>;
  /** Called with the client's stream before any data is transferred. */
  onConnect?(client: WebSocketStream): void;
  readonly log: Log;
}

/** Throws ApiError before anything is sent; then the WebSocket owns the socket. */
export async function servePlainStream({ request, socket, head }: UpgradeRequest, stream: PlainStream): Promise<void> {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
    throw badRequest(`a ${stream.what} is a WebSocket; the request does not ask to upgrade to one`);
  }
  const handshake = serverHandshake((header) => headerText(request.headers[header]), [PLAIN_STREAM_PROTOCOL]);
  if ('refusal' in handshake) throw badRequest(handshake.refusal.message);
  const guest = await stream.open();
  if (socket.destroyed) {
    guest.destroy();
    return;
  }
  socket.write(handshake.head);
  (socket as { setKeepAlive?(on: boolean, ms: number): void }).setKeepAlive?.(true, KEEP_ALIVE_MS);
  const client = new WebSocketStream(socket, { role: 'server', head });
  stream.onConnect?.(client);
  connectStreams(guest, client, stream);
}

/** Connects both streams until one of them ends. The last data of each is still sent. */
function connectStreams(guest: Duplex, client: WebSocketStream, { what, log }: PlainStream): void {
  guest.on('error', (error: Error) => {
    log.debug({ err: error }, `The ${what} of a guest failed`);
    client.close(CLOSE_CODES.internal, `the ${what} failed`);
  });
  // A client that disconnects is not an error; its stream is closed below.
  client.on('error', (error) => log.debug({ err: error }, `The client of a ${what} disconnected`));
  guest.pipe(client);
  client.pipe(guest, { end: false });
  client.once('close', () => closeGuestStream(guest));
  guest.once('close', () => {
    if (!guest.readableEnded) client.close(CLOSE_CODES.internal, `the ${what} was closed`);
    // Data of the client is ignored from now on, but must be read to see its close.
    else client.resume();
  });
}

function closeGuestStream(guest: Duplex): void {
  if (guest.destroyed) return;
  guest.unpipe();
  guest.resume();
  const timer = setTimeout(() => guest.destroy(), CLOSE_TIMEOUT_MS);
  timer.unref();
  guest.once('close', () => clearTimeout(timer));
  guest.end(() => guest.destroy());
}
