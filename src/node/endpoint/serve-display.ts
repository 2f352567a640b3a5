/**
 * GET .../vnc and .../vnc/screenshot: the display of a guest, as an interactive stream or as a picture. Users share the
 * display, unless one asks with preserveSession for a session of its own.
 */
import { ApiError, badRequest } from '#kube/api-error.ts';
import type { UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import { NoDisplayError, type EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { servePlainStream } from '#node/endpoint/plain-stream.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import type { ConsoleParts } from '#node/endpoint/serve-console.ts';
import { liveDomain, toVerbError } from '#node/endpoint/serve-verb.ts';

type DisplayRoute = Extract<EndpointRoute, { kind: 'vnc' | 'screenshot' }>;

/** QEMU itself allows 32. */
const MAX_VIEWERS = 16;

/** Throws ApiError before anything is sent; then the WebSocket owns the socket. */
export async function serveVnc(
  { agent, sessions, clock, log }: ConsoleParts,
  { namespace, name }: DisplayRoute,
  query: URLSearchParams,
  upgrade: UpgradeRequest,
): Promise<void> {
  const { id } = liveDomain(agent, namespace, name);
  const preservesSession = query.get('preserveSession') === 'true';
  const checkSessions = () => {
    const open = sessions.count(id);
    if (preservesSession && open > 0) {
      throw new ApiError(503, 'ServiceUnavailable', 'Active VNC connection. Request denied.');
    }
    if (open >= MAX_VIEWERS) {
      const message = `Cannot open the display of ${name}: ${open} viewers are connected, the most it allows; close one`;
      throw new ApiError(503, 'ServiceUnavailable', message);
    }
  };
  checkSessions();
  await servePlainStream(upgrade, {
    what: 'display',
    clock,
    log: log.child({ namespace, name }),
    async open() {
      const display = await agent.openDisplay(id).catch((error: unknown) => {
        throw toDisplayError('open the display of', name, error);
      });
      try {
        // Another session may have started meanwhile.
        checkSessions();
      } catch (error) {
        display.destroy();
        throw error;
      }
      return display;
    },
    onConnect: (client) => sessions.add(id, client),
  });
}

/** Returns a PNG. */
export async function serveScreenshot(
  agent: EndpointAgent,
  { namespace, name }: DisplayRoute,
  query: URLSearchParams,
): Promise<Buffer> {
  const { id } = liveDomain(agent, namespace, name);
  try {
    return await agent.screenshot(id, { moveCursor: query.get('moveCursor') === 'true' });
  } catch (error) {
    throw toDisplayError('take a screenshot of', name, error);
  }
}

/** Converts errors, with KubeVirt's message for a guest that was started without a display. */
function toDisplayError(what: string, name: string, error: unknown): ApiError {
  return error instanceof NoDisplayError
    ? badRequest('No graphics devices are present.')
    : toVerbError(what, name, error);
}
