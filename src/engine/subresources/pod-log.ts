/** GET pods/log: streams the log of a container from the kubelet of its node. */
import type { IncomingMessage } from 'node:http';
import { decodeEntry, type Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import type { SubresourceHandlers } from '#engine/handlers/call.ts';
import type { Kubelets } from '#engine/remote/kubelets.ts';
import { UpstreamError } from '#engine/remote/https-upstream.ts';
import { readResponseBody, relayStream } from '#engine/remote/relay-response.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { checkLogOptions, kubeletLogQuery, parseLogOptions } from '#engine/subresources/pod-log-options.ts';
import { upstreamStatusError } from '#engine/subresources/upstream-status-error.ts';
import { type ApiError, badRequest, invalid, notFound } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

const HEADERS_TIMEOUT_MS = 60_000;
const MAX_REFUSAL_BYTES = 50_000;
const PODS_LOG = { group: '', plural: 'pods/log' };

export function podLog(kubelets: Kubelets): SubresourceHandlers {
  return { get: (call) => getLog(call, kubelets) };
}

async function getLog(call: Call, kubelets: Kubelets): Promise<ApiResponse> {
  const { store, served, route, request } = call;
  const { namespace, name } = route;
  const options = parseLogOptions(request.query);
  const errors = checkLogOptions(options);
  if (errors.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, name, errors);
  const entry = store.get(served.resource.collection, entryId(served.resource, namespace, name));
  if (entry === undefined) throw notFound(served.resource, name);
  const { spec } = decodeEntry(entry, served.resource) as Pod;
  const container = containerOf(name, spec, options.container);
  // No node has run the pod yet, so its log is empty.
  if (!spec.nodeName) return { status: 204, contentType: 'text/plain', body: Buffer.alloc(0) };
  const response = await kubelets.get(spec.nodeName, {
    path: `/containerLogs/${namespace}/${name}/${container}${kubeletLogQuery(options)}`,
    insecure: options.insecureSkipTLSVerifyBackend,
    // A kubelet starts its response with the first line, and a container may be silent for days.
    headersTimeoutMs: options.follow ? undefined : HEADERS_TIMEOUT_MS,
    signal: request.signal,
  });
  const { incoming } = response;
  const { statusCode = 500 } = incoming;
  if (statusCode < 200 || statusCode > 206) throw await kubeletError(incoming, call);
  return relayStream(incoming, 'text/plain');
}

interface NamedContainer {
  readonly name: string;
}

type Pod = KubeObject & { readonly spec: PodSpec };

interface PodSpec {
  readonly nodeName?: string;
  readonly containers?: readonly NamedContainer[];
  readonly initContainers?: readonly NamedContainer[];
  readonly ephemeralContainers?: readonly NamedContainer[];
}

/** Throws 400 if the container is ambiguous or does not exist. */
function containerOf(pod: string, spec: PodSpec, requested: string): string {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec;
  const names = [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name);
  if (requested !== '') {
    if (names.includes(requested)) return requested;
    throw badRequest(`container ${requested} is not valid for pod ${pod}`);
  }
  if (containers.length === 1) return containers[0]!.name;
  const choice = containers.length === 0 ? '' : `, choose one of: [${names.join(' ')}]`;
  throw badRequest(`a container name must be specified for pod ${pod}${choice}`);
}

async function kubeletError(incoming: IncomingMessage, { clock, route }: Call): Promise<ApiError> {
  const { statusCode: status = 500 } = incoming;
  try {
    const text = (await readResponseBody(incoming, clock, MAX_REFUSAL_BYTES)).toString('utf8');
    return upstreamStatusError(status, text, PODS_LOG, route.name);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return upstreamStatusError(status, error.message, PODS_LOG, route.name);
  }
}
