/** Who asks, by the common name of a certificate that TLS has checked already, and what each may. Pure. */
import { forbiddenPath, type ApiError } from '#kube/api-error.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';

/** The API server, on behalf of people who may read logs. */
export const LOG_READER = 'kube-apiserver-kubelet-client';
/** subresources/, on behalf of people who may use the verb. */
export const SUBRESOURCES = 'selfsame-subresources';

/** undefined = may. */
export function refusal(
  commonName: string,
  { kind }: EndpointRoute,
  method: string,
  path: string,
): ApiError | undefined {
  if (kind === 'healthz' || commonName === SUBRESOURCES) return undefined;
  if (commonName === LOG_READER && kind === 'logs') return undefined;
  return forbiddenPath(commonName, method.toLowerCase(), path);
}
