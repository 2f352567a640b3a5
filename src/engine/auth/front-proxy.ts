/**
 * The client certificates that the engine presents to other servers, issued by its own CA at each start and renewed:
 *
 *   aggregated APIs   `front-proxy-client`: its holder may pass the user in headers
 *   kubelets          `kube-apiserver-kubelet-client`
 *
 * Neither user is in a group: a role decides what a kubelet allows, and our own API grants them nothing.
 */
import type { IssuedCertificate, Pki } from '#engine/auth/certificates.ts';
import type { Clock } from '#lib/clock.ts';
import { renewOnRead } from '#lib/renewals.ts';

const FRONT_PROXY_CLIENT = 'front-proxy-client';
export const KUBELET_CLIENT = 'kube-apiserver-kubelet-client';

const DAYS = 365;

export interface OutwardIdentity {
  /** The CA of kubelet certificates and the issuer of ours. */
  readonly caPem: string;
  readonly frontProxy: () => IssuedCertificate;
  readonly kubelet: () => IssuedCertificate;
}

export function issueOutwardIdentity(
  pki: Pick<Pki, 'caPem' | 'issueClientCertificate'>,
  { clock }: { readonly clock: Clock },
): OutwardIdentity {
  const issue = (user: string) =>
    renewOnRead(() => pki.issueClientCertificate({ user, groups: [], days: DAYS }), clock);
  return { caPem: pki.caPem, frontProxy: issue(FRONT_PROXY_CLIENT), kubelet: issue(KUBELET_CLIENT) };
}

export const REMOTE_USER = 'X-Remote-User';
export const REMOTE_UID = 'X-Remote-Uid';
export const REMOTE_GROUP = 'X-Remote-Group';
export const REMOTE_EXTRA_PREFIX = 'X-Remote-Extra-';

/**
 * Returns the data of ConfigMap kube-system/extension-apiserver-authentication, by which aggregated API servers trust
 * us.
 */
export function extensionAuthentication(caPem: string): Record<string, string> {
  return {
    'client-ca-file': caPem,
    'requestheader-allowed-names': JSON.stringify([FRONT_PROXY_CLIENT]),
    'requestheader-client-ca-file': caPem,
    'requestheader-extra-headers-prefix': JSON.stringify([REMOTE_EXTRA_PREFIX]),
    'requestheader-group-headers': JSON.stringify([REMOTE_GROUP]),
    'requestheader-uid-headers': JSON.stringify([REMOTE_UID]),
    'requestheader-username-headers': JSON.stringify([REMOTE_USER]),
  };
}
