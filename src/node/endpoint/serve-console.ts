/** GET .../console: the serial console of a guest as a WebSocket, binary both ways. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { badRequest } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';
import { CLOSE } from '#lib/websocket-frames.ts';
import { serverHandshake } from '#lib/websocket-handshake.ts';
import { WebSocketStream } from '#lib/websocket.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { headerText } from '#node/endpoint/header-text.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import { liveDomain, verbFault } from '#node/endpoint/serve-verb.ts';

/** As KubeVirt's clients ask for it. */
export const CONSOLE_PROTOCOL = 'plain.kubevirt.io';
const KEEP_ALIVE_MS = 30_000;

type ConsoleRoute = Extract<EndpointRoute, { kind: 'console' }>;

export interface Upgrading {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** Throws ApiError as long as nothing was sent; then the socket is the WebSocket's. */
export async function serveConsole(
  agent: EndpointAgent,
  { namespace, name }: ConsoleRoute,
  { request, socket, head }: Upgrading,
  log: Log,
): Promise<void> {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') throw badRequest('a console is a WebSocket');
  const handshake = serverHandshake((header) => headerText(request.headers[header]), [CONSOLE_PROTOCOL]);
  if ('refused' in handshake) throw badRequest(handshake.refused.message);
  const { id } = liveDomain(agent, namespace, name);
  let serial: Duplex;
  try {
    serial = await agent.openConsole(id);
  } catch (error) {
    throw verbFault('open the console of', name, error);
  }
  if (socket.destroyed) {
    serial.destroy();
    return;
  }
  socket.write(handshake.head);
  (socket as { setKeepAlive?(on: boolean, ms: number): void }).setKeepAlive?.(true, KEEP_ALIVE_MS);
  join(serial, new WebSocketStream(socket, { role: 'server', head }), log.child({ namespace, name }));
}

/** Ends with whichever ends first; what the guest said last is still sent. */
function join(serial: Duplex, client: WebSocketStream, log: Log): void {
  const broken = (error: Error) => {
    log.debug({ err: error }, 'a console broke');
    client.close(CLOSE.internal, 'the console broke');
  };
  serial.on('error', broken);
  // A client that just goes away is no fault; its stream is closed all the same.
  client.on('error', (error) => log.debug({ err: error }, 'a console was left'));
  serial.pipe(client);
  client.pipe(serial, { end: false });
  client.once('close', () => serial.destroy());
  serial.once('close', () => {
    if (!serial.readableEnded) client.close(CLOSE.internal, 'the console was closed');
    // Nobody takes what it still says, but its close is to be seen.
    else client.resume();
  });
}
