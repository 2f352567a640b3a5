/** Service accounts as users: the names, groups and extras that Kubernetes gives them. */
import { AUTHENTICATED } from '#engine/auth/groups.ts';
import type { UserInfo } from '#engine/request.ts';

export const SERVICE_ACCOUNTS_GROUP = 'system:serviceaccounts';

const EXTRA = 'authentication.kubernetes.io/';

/** An object as tokens and references name it: this very one. */
export interface Reference {
  readonly name: string;
  readonly uid: string;
}

/** What else a token tells about whoever shows it. */
export interface Credential {
  /** The token's own id. */
  readonly id?: string | undefined;
  readonly pod?: Reference | undefined;
  /** The uid is '' where the pod's node is not known to the API. */
  readonly node?: Reference | undefined;
}

export function serviceAccountName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** The value of the credential-id extra, and of the audit annotation of whoever issued it. */
export function credentialId(tokenId: string): string {
  return `JTI=${tokenId}`;
}

/** `uid` is '' for the engine's own parts, which act under an account without a token. */
export function serviceAccountUser(
  namespace: string,
  account: Reference,
  { id, pod, node }: Credential = {},
): UserInfo {
  const extra = {
    ...(id === undefined ? {} : { [`${EXTRA}credential-id`]: [credentialId(id)] }),
    ...(node === undefined ? {} : { [`${EXTRA}node-name`]: [node.name] }),
    ...(node === undefined || node.uid === '' ? {} : { [`${EXTRA}node-uid`]: [node.uid] }),
    ...(pod === undefined ? {} : { [`${EXTRA}pod-name`]: [pod.name], [`${EXTRA}pod-uid`]: [pod.uid] }),
  };
  return {
    name: serviceAccountName(namespace, account.name),
    ...(account.uid === '' ? {} : { uid: account.uid }),
    groups: [SERVICE_ACCOUNTS_GROUP, `${SERVICE_ACCOUNTS_GROUP}:${namespace}`, AUTHENTICATED],
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}
