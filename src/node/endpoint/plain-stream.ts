/** A stream of a guest as a WebSocket, binary both ways: KubeVirt's `plain.kubevirt.io`. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { badRequest } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';
import { CLOSE } from '#lib/websocket-frames.ts';
import { serverHandshake } from '#lib/websocket-handshake.ts';
import { WebSocketStream } from '#lib/websocket.ts';
import { headerText } from '#node/endpoint/header-text.ts';

/** As KubeVirt's clients ask for it. */
export const PLAIN_PROTOCOL = 'plain.kubevirt.io';
const KEEP_ALIVE_MS = 30_000;
/** For the guest to take what its client said last. */
const LINGER_MS = 5000;

export interface Upgrading {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

export interface PlainStream {
  /** What it is, for those who read the log or are told of a fault: `console`. */
  readonly what: string;
  /** Rejects with ApiError. */
  open(): Promise<Duplex>;
  /** Called with the client's side before anything passes. */
  joined?(client: WebSocketStream): void;
  readonly log: Log;
}

/** Throws ApiError as long as nothing was sent; then the socket is the WebSocket's. */
export async function servePlainStream({ request, socket, head }: Upgrading, stream: PlainStream): Promise<void> {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') throw badRequest(`a ${stream.what} is a WebSocket`);
  const handshake = serverHandshake((header) => headerText(request.headers[header]), [PLAIN_PROTOCOL]);
  if ('refused' in handshake) throw badRequest(handshake.refused.message);
  const guest = await stream.open();
  if (socket.destroyed) {
    guest.destroy();
    return;
  }
  socket.write(handshake.head);
  (socket as { setKeepAlive?(on: boolean, ms: number): void }).setKeepAlive?.(true, KEEP_ALIVE_MS);
  const client = new WebSocketStream(socket, { role: 'server', head });
  stream.joined?.(client);
  join(guest, client, stream);
}

/** Ends with whichever ends first; what each said last is still sent. */
function join(guest: Duplex, client: WebSocketStream, { what, log }: PlainStream): void {
  guest.on('error', (error: Error) => {
    log.debug({ err: error }, `a ${what} broke`);
    client.close(CLOSE.internal, `the ${what} broke`);
  });
  // A client that just goes away is no fault; its stream is closed all the same.
  client.on('error', (error) => log.debug({ err: error }, `a ${what} was left`));
  guest.pipe(client);
  client.pipe(guest, { end: false });
  client.once('close', () => leave(guest));
  guest.once('close', () => {
    if (!guest.readableEnded) client.close(CLOSE.internal, `the ${what} was closed`);
    // Nobody takes what it still says, but its close is to be seen.
    else client.resume();
  });
}

function leave(guest: Duplex): void {
  if (guest.destroyed) return;
  guest.unpipe();
  guest.resume();
  const timer = setTimeout(() => guest.destroy(), LINGER_MS);
  timer.unref();
  guest.once('close', () => clearTimeout(timer));
  guest.end(() => guest.destroy());
}
