/** Requests tokens of service accounts: a subresource of the account. */
import type { CallOptions, ObjectName, Writer } from '#client/client.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

interface TokenRequestSpec {
  readonly expirationSeconds: number;
  /** The object without which the token is invalid. */
  readonly boundObjectRef?: {
    readonly apiVersion: 'v1';
    readonly kind: 'Pod';
    readonly name: string;
    readonly uid: string;
  };
}

interface TokenRequest extends KubeObject {
  spec: TokenRequestSpec;
  status?: { token?: string; expirationTimestamp?: string };
}

const TOKENS: ResourceType<TokenRequest> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

interface GrantedToken {
  /** Undefined if the API server returned none. */
  readonly token: string | undefined;
  /** Undefined if the API server did not say it. */
  readonly expiresAtMs: number | undefined;
}

/** Throws ApiError NotFound if the account does not exist. The server may grant a shorter lifetime than requested. */
export async function requestServiceAccountToken(
  client: Pick<Writer, 'create'>,
  account: ObjectName,
  spec: TokenRequestSpec,
  options: CallOptions = {},
): Promise<GrantedToken> {
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { ...account }, spec };
  const { status } = await client.create(TOKENS, request, { subresource: 'token', ...options });
  const expiresAtMs = Date.parse(status?.expirationTimestamp ?? '');
  return { token: status?.token || undefined, expiresAtMs: Number.isNaN(expiresAtMs) ? undefined : expiresAtMs };
}
