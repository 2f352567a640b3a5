/** Who asks, by the common name of a certificate that TLS has checked already, and what each may. Pure. */
import { HOST_OPERATOR, HOST_READ_VERBS, HOST_READER } from '#api/host-api.ts';
import { forbiddenPath, type ApiError } from '#kube/api-error.ts';
import { nodeOfUser } from '#kube/node-user.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';

/** The API server, on behalf of people who may read logs. */
export const LOG_READER = 'kube-apiserver-kubelet-client';
/** subresources/, on behalf of people who may use the verb. */
export const SUBRESOURCES = 'selfsame-subresources';

/** undefined = may. */
export function refusal(commonName: string, route: EndpointRoute, method: string, path: string): ApiError | undefined {
  return mayAsk(commonName, route) ? undefined : forbiddenPath(commonName, method.toLowerCase(), path);
}

function mayAsk(commonName: string, route: EndpointRoute): boolean {
  if (route.kind === 'healthz') return true;
  // What is below the API is for those who are named for it, and for nobody who speaks for people.
  if (route.kind === 'host') {
    if (commonName === HOST_OPERATOR) return true;
    return commonName === HOST_READER && HOST_READ_VERBS.some((verb) => verb === route.verb);
  }
  // Nodes come for guests, and for nothing else.
  if (route.kind === 'migrations') return nodeOfUser(commonName) !== undefined;
  return commonName === SUBRESOURCES || (commonName === LOG_READER && route.kind === 'logs');
}
