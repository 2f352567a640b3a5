/**
 * The `auth-provider` settings of a kubeconfig user, which exec plugins have replaced. Only the ID token of `oidc` is
 * used, until it expires; nothing refreshes it here. All other providers are refused with the plugin to use instead.
 */
import {
  CredentialError,
  type ClientCredential,
  type CredentialSource,
} from '#client/credentials/credential-source.ts';
import { KubeconfigError, readString, type KubeconfigFields } from '#client/kubeconfig-fields.ts';
import { isRecord } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';

const REPLACEMENTS: Readonly<Record<string, string>> = {
  gcp: 'use the exec plugin gke-gcloud-auth-plugin: install it and run gcloud container clusters get-credentials',
  azure: 'use the exec plugin kubelogin of Azure: install it and run kubelogin convert-kubeconfig',
  openstack: 'use the exec plugin client-keystone-auth of cloud-provider-openstack',
  oidc: 'use the exec plugin kubectl oidc-login (kubelogin), or renew the token by running kubectl',
};
const OTHER_REPLACEMENT = 'use an exec plugin, a client certificate, a token or a tokenFile';
/** A token is not used in its last seconds, as in client-go. */
const MARGIN_MS = 10_000;

/** Returns the ID token of an OIDC provider. Throws KubeconfigError for other providers, and if it cannot be used. */
export function readAuthProvider(value: unknown, where: string, clock: Clock): CredentialSource {
  const provider: KubeconfigFields = isRecord(value) ? value : {};
  const name = readString(provider, 'name', `auth-provider of ${where}`) ?? '';
  const replacement = Object.hasOwn(REPLACEMENTS, name) ? REPLACEMENTS[name]! : OTHER_REPLACEMENT;
  const refusal = (problem: string) => `Cannot use auth-provider "${name}" of ${where} of the kubeconfig: ${problem}`;
  if (name !== 'oidc') throw new KubeconfigError(refusal(`it is not supported; ${replacement}`));
  const config: KubeconfigFields = isRecord(provider['config']) ? provider['config'] : {};
  const token = readString(config, 'id-token', `auth-provider of ${where}`) ?? '';
  if (token === '') throw new KubeconfigError(refusal(`it has no id-token; ${replacement}`));
  const expiresAtMs = expiryOfJwt(token);
  if (expiresAtMs === undefined) {
    throw new KubeconfigError(refusal(`its id-token is not a JWT with an expiry; ${replacement}`));
  }
  const expired = refusal(`its id-token expired on ${new Date(expiresAtMs).toISOString()}; ${replacement}`);
  const isExpired = () => clock.now() + MARGIN_MS >= expiresAtMs;
  if (isExpired()) throw new KubeconfigError(expired);
  const credential: ClientCredential = { token };
  return {
    async current() {
      if (isExpired()) throw new CredentialError(expired);
      return credential;
    },
    discard() {},
  };
}

/** Returns when a JWT expires, or undefined if that is unknown. The API server verifies the signature, not the client. */
function expiryOfJwt(token: string): number | undefined {
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const exp = isRecord(claims) ? claims['exp'] : undefined;
    return typeof exp === 'number' && Math.abs(exp) < 8.64e12 ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}
