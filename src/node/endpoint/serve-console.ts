/** GET .../console: the serial console of a guest. As in KubeVirt, a new session replaces the previous one. */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { servePlainStream } from '#node/endpoint/plain-stream.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import { liveDomain, toVerbError } from '#node/endpoint/serve-verb.ts';
import type { Sessions } from '#node/endpoint/sessions.ts';

type ConsoleRoute = Extract<EndpointRoute, { kind: 'console' }>;

/** The reason that virtctl knows for a disconnected console. */
const REPLACED = 'another user connected to the console of the target VM';

export interface ConsoleParts {
  readonly agent: EndpointAgent;
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly log: Log;
}

/** Throws ApiError before anything is sent; then the WebSocket owns the socket. */
export async function serveConsole(
  { agent, sessions, clock, log }: ConsoleParts,
  { namespace, name }: ConsoleRoute,
  upgrade: UpgradeRequest,
): Promise<void> {
  const { id } = liveDomain(agent, namespace, name);
  await servePlainStream(upgrade, {
    what: 'console',
    clock,
    log: log.child({ namespace, name }),
    async open() {
      try {
        return await agent.openConsole(id);
      } catch (error) {
        throw toVerbError('open the console of', name, error);
      }
    },
    onConnect: (client) => sessions.replace(id, client, REPLACED),
  });
}
