/** GET /v1/migrations: a stream between the agents of two nodes. What they say on it is migration/'s. */
import { badRequest, internalError } from '#kube/api-error.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { headerText } from '#node/endpoint/header-text.ts';
import type { Upgrading } from '#node/endpoint/plain-stream.ts';

/** What both sides call it in the header Upgrade. */
export const MIGRATION_PROTOCOL = 'migration.selfsame.io';
const KEEP_ALIVE_MS = 30_000;

/** Throws ApiError as long as nothing was sent; then the socket is the agent's. `from`: by its certificate. */
export async function serveMigration(
  { migrations }: EndpointAgent,
  from: string | undefined,
  { request, socket, head }: Upgrading,
): Promise<void> {
  if (from === undefined || headerText(request.headers.upgrade)?.toLowerCase() !== MIGRATION_PROTOCOL) {
    throw badRequest(`a migration is a stream of ${MIGRATION_PROTOCOL}`);
  }
  if (migrations === undefined) throw internalError('guests of this node stay where they are');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${MIGRATION_PROTOCOL}`];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  (socket as { setKeepAlive?(on: boolean, ms: number): void }).setKeepAlive?.(true, KEEP_ALIVE_MS);
  if (head.length > 0) socket.unshift(head);
  await migrations.accept(from, socket);
}
