/** GET /v1/migrations: a stream between the agents of two nodes. migration/ handles the messages on it. */
import { badRequest, internalError } from '#kube/api-error.ts';
import { enableTcpKeepAlive } from '#lib/tcp-keep-alive.ts';
import type { UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';

/** The protocol in the Upgrade header. */
export const MIGRATION_PROTOCOL = 'migration.selfsame.io';

/** Throws ApiError before anything is sent; then the agent owns the socket. `from` is the node in the certificate. */
export async function serveMigration(
  { migrations }: EndpointAgent,
  from: string | undefined,
  { request, socket, head }: UpgradeRequest,
): Promise<void> {
  if (from === undefined || request.headers.upgrade?.toLowerCase() !== MIGRATION_PROTOCOL) {
    throw badRequest(`a migration is a stream; the request does not ask to upgrade to ${MIGRATION_PROTOCOL}`);
  }
  if (migrations === undefined) throw internalError('this node does not support migrations');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${MIGRATION_PROTOCOL}`];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  enableTcpKeepAlive(socket);
  if (head.length > 0) socket.unshift(head);
  await migrations.accept(from, socket);
}
