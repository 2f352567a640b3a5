/** Serves a stream of a guest as a WebSocket with binary frames: KubeVirt's `plain.kubevirt.io`. */
import { PLAIN_STREAM_PROTOCOL } from '#api/names.ts';
import type { Duplex } from 'node:stream';
import { badRequest } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { acceptWebSocket, findHandshakeError, type UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import { CLOSE_CODES, type WebSocketStream } from '#lib/websocket/websocket.ts';

/** Time for the guest to receive the last data of its client. */
const CLOSE_TIMEOUT_MS = 5000;

interface PlainStream {
  /** Kind of the stream for logs and errors, for example `console`. */
  readonly what: string;
  /** Rejects with ApiError. */
  open(): Promise<Duplex>;
  /** Called with the client's stream before any data is transferred. */
  onConnect?(client: WebSocketStream): void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Throws ApiError before anything is sent; then the WebSocket owns the socket. */
export async function servePlainStream(upgrade: UpgradeRequest, stream: PlainStream): Promise<void> {
  const refusal = findHandshakeError(upgrade.request.headers, [PLAIN_STREAM_PROTOCOL]);
  if (refusal !== undefined) throw badRequest(`a ${stream.what} is a WebSocket; ${refusal}`);
  const guest = await stream.open();
  const client = acceptWebSocket(upgrade, [PLAIN_STREAM_PROTOCOL]);
  if (client === undefined) {
    guest.destroy();
    return;
  }
  client.keepAlive(stream.clock);
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
