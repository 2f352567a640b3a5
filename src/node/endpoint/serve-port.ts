/** GET .../portforward/{port}/{protocol}: a connection to a port of a guest. */
import { conflict } from '#kube/api-error.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { servePlainStream } from '#node/endpoint/plain-stream.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import { liveDomain, toVerbError } from '#node/endpoint/serve-verb.ts';

type PortRoute = Extract<EndpointRoute, { kind: 'port' }>;

/** Throws ApiError before anything is sent; then the WebSocket owns the socket. */
export async function servePort(
  { agent, clock, log }: { readonly agent: EndpointAgent; readonly clock: Clock; readonly log: Log },
  { namespace, name, guestPort }: PortRoute,
  upgrade: UpgradeRequest,
): Promise<void> {
  const { id, current } = liveDomain(agent, namespace, name);
  if (current.state !== 'running') {
    throw conflict({ group: KUBEVIRT_GROUP, plural: 'virtualmachineinstance' }, name, 'VMI is paused');
  }
  await servePlainStream(upgrade, {
    what: 'connection',
    clock,
    log: log.child({ namespace, name, ...guestPort }),
    async open() {
      try {
        return await agent.openPort(id, guestPort);
      } catch (error) {
        throw toVerbError(`reach port ${guestPort.port}/${guestPort.protocol} of`, name, error);
      }
    },
  });
}
