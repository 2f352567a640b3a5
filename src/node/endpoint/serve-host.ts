/** POST /host/v1/<verb>: executes a call of the host API, with JSON parameters and a JSON answer. peer.ts checks access. */
import type { HostAnswer } from '#api/host-api.ts';
import { ApiError, badRequest } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import type { EndpointAgent, HostCallOptions } from '#node/endpoint/endpoint-agent.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';
import { errorMessage } from '#lib/error-message.ts';

type HostRoute = Extract<EndpointRoute, { kind: 'host' }>;

/** Throws ApiError for a malformed request. Errors of the call itself are in its answer. */
export async function serveHost(
  { host }: Pick<EndpointAgent, 'host'>,
  { verb }: HostRoute,
  body: Buffer,
  { signal }: HostCallOptions,
): Promise<HostAnswer> {
  if (host === undefined) {
    throw new ApiError(404, 'NotFound', 'this node does not serve the host API', { details: {} });
  }
  return await host.call(verb, parseParameters(body), { signal });
}

function parseParameters(body: Buffer): Readonly<Record<string, unknown>> {
  if (body.length === 0) return {};
  let parameters: unknown;
  try {
    parameters = JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw badRequest(`the parameters are not valid JSON: ${errorMessage(error)}`);
  }
  if (!isRecord(parameters)) throw badRequest('the parameters are not a JSON object');
  return parameters;
}
