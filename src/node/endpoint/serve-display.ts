/** GET .../vnc and .../vnc/screenshot: the display of a guest, to look at and to use, or as a picture. */
import { ApiError, badRequest } from '#kube/api-error.ts';
import { NoDisplay, type EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { servePlainStream, type Upgrading } from '#node/endpoint/plain-stream.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import type { ConsoleParts } from '#node/endpoint/serve-console.ts';
import { liveDomain, verbFault } from '#node/endpoint/serve-verb.ts';

type DisplayRoute = Extract<EndpointRoute, { kind: 'vnc' | 'screenshot' }>;

const REPLACED = 'another user connected to the display of the target VM';

/** Throws ApiError as long as nothing was sent; then the socket is the WebSocket's. */
export async function serveVnc(
  { agent, sessions, log }: ConsoleParts,
  { namespace, name }: DisplayRoute,
  query: URLSearchParams,
  upgrading: Upgrading,
): Promise<void> {
  const { id } = liveDomain(agent, namespace, name);
  const preserves = query.get('preserveSession') === 'true';
  const refuseSecond = () => {
    if (preserves && sessions.isOpen(id)) {
      throw new ApiError(503, 'ServiceUnavailable', 'Active VNC connection. Request denied.');
    }
  };
  refuseSecond();
  await servePlainStream(upgrading, {
    what: 'display',
    log: log.child({ namespace, name }),
    async open() {
      const display = await agent.openDisplay(id).catch((error: unknown) => {
        throw displayFault('open the display of', name, error);
      });
      try {
        // Another one may have come meanwhile.
        refuseSecond();
      } catch (error) {
        display.destroy();
        throw error;
      }
      return display;
    },
    joined: (client) => sessions.take(id, client, REPLACED),
  });
}

/** A PNG. */
export async function serveScreenshot(
  agent: EndpointAgent,
  { namespace, name }: DisplayRoute,
  query: URLSearchParams,
): Promise<Buffer> {
  const { id } = liveDomain(agent, namespace, name);
  try {
    return await agent.screenshot(id, { moveCursor: query.get('moveCursor') === 'true' });
  } catch (error) {
    throw displayFault('take a screenshot of', name, error);
  }
}

/** KubeVirt's words for a guest that has none, which a spec does not always tell: it may have been started without. */
function displayFault(what: string, name: string, error: unknown): ApiError {
  return error instanceof NoDisplay ? badRequest('No graphics devices are present.') : verbFault(what, name, error);
}
