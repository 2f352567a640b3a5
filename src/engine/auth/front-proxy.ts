/**
 * How the engine shows who it is to servers behind it, with certificates of its own CA that are new at each start, and renewed:
 *
 *   aggregated APIs   `front-proxy-client`: whoever has it may say in headers who a user is
 *   kubelets          `kube-apiserver-kubelet-client`
 *
 * Neither is in a group: what a kubelet lets this user do is for a role to say, and to our own API both are nobody.
 */
import type { IssuedCertificate, Pki } from '#engine/auth/certificates.ts';
import type { Clock } from '#lib/clock.ts';
import { renewed } from '#lib/renewals.ts';

export const FRONT_PROXY_CLIENT = 'front-proxy-client';
export const KUBELET_CLIENT = 'kube-apiserver-kubelet-client';

const DAYS = 365;

export interface OutwardIdentity {
  /** Whom kubelets must have their certificates from, and the issuer of ours. */
  readonly caPem: string;
  readonly frontProxy: () => IssuedCertificate;
  readonly kubelet: () => IssuedCertificate;
}

export function issueOutwardIdentity(
  pki: Pick<Pki, 'caPem' | 'issueClientCertificate'>,
  { clock }: { readonly clock: Clock },
): OutwardIdentity {
  const issue = (user: string) => renewed(() => pki.issueClientCertificate({ user, groups: [], days: DAYS }), clock);
  return { caPem: pki.caPem, frontProxy: issue(FRONT_PROXY_CLIENT), kubelet: issue(KUBELET_CLIENT) };
}

export const REMOTE_USER = 'X-Remote-User';
export const REMOTE_UID = 'X-Remote-Uid';
export const REMOTE_GROUP = 'X-Remote-Group';
export const REMOTE_EXTRA_PREFIX = 'X-Remote-Extra-';

/** What servers behind us read from ConfigMap kube-system/extension-apiserver-authentication: how to trust us. */
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
