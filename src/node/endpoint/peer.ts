/** The permissions of the endpoint's clients, by the common name in their verified certificate. Pure. */
import { HOST_OPERATOR, HOST_READ_VERBS, HOST_READER } from '#api/host-api.ts';
import { forbiddenPath, type ApiError } from '#kube/api-error.ts';
import { nodeOfUser } from '#kube/node-user.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';

/** The API server, on behalf of users who may read logs. */
export const LOG_READER = 'kube-apiserver-kubelet-client';
/** The subresources API, on behalf of users who may use the verb. */
export const SUBRESOURCES = 'selfsame-subresources';

/** Returns the error of a request that is not allowed, or undefined if it is allowed. */
export function refuseRequest(
  commonName: string,
  route: EndpointRoute,
  method: string,
  path: string,
): ApiError | undefined {
  return isAllowed(commonName, route) ? undefined : forbiddenPath(commonName, method.toLowerCase(), path);
}

function isAllowed(commonName: string, route: EndpointRoute): boolean {
  if (route.kind === 'healthz') return true;
  // The host API is for its own clients only, not for clients that act on behalf of users.
  if (route.kind === 'host') {
    if (commonName === HOST_OPERATOR) return true;
    return commonName === HOST_READER && HOST_READ_VERBS.some((verb) => verb === route.verb);
  }
  // Nodes may use nothing but migrations.
  if (route.kind === 'migrations') return nodeOfUser(commonName) !== undefined;
  return commonName === SUBRESOURCES || (commonName === LOG_READER && route.kind === 'logs');
}
