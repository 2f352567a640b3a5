/** GET .../console: the serial console of a guest. As in KubeVirt, whoever opens it takes it from who had it. */
import type { Log } from '#lib/log.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { servePlainStream, type Upgrading } from '#node/endpoint/plain-stream.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import { liveDomain, verbFault } from '#node/endpoint/serve-verb.ts';
import type { Sessions } from '#node/endpoint/sessions.ts';

type ConsoleRoute = Extract<EndpointRoute, { kind: 'console' }>;

/** As virtctl has it among the reasons why one is disconnected. */
const REPLACED = 'another user connected to the console of the target VM';

export interface ConsoleParts {
  readonly agent: EndpointAgent;
  readonly sessions: Sessions;
  readonly log: Log;
}

/** Throws ApiError as long as nothing was sent; then the socket is the WebSocket's. */
export async function serveConsole(
  { agent, sessions, log }: ConsoleParts,
  { namespace, name }: ConsoleRoute,
  upgrading: Upgrading,
): Promise<void> {
  const { id } = liveDomain(agent, namespace, name);
  await servePlainStream(upgrading, {
    what: 'console',
    log: log.child({ namespace, name }),
    async open() {
      try {
        return await agent.openConsole(id);
      } catch (error) {
        throw verbFault('open the console of', name, error);
      }
    },
    joined: (client) => sessions.take(id, client, REPLACED),
  });
}
