/** The user names, groups and extras of service accounts. */
import { AUTHENTICATED } from '#engine/auth/groups.ts';
import type { UserInfo } from '#engine/request/request.ts';

export const SERVICE_ACCOUNTS_GROUP = 'system:serviceaccounts';

const EXTRA = 'authentication.kubernetes.io/';

/** A reference to a specific object by name and uid. */
export interface Reference {
  readonly name: string;
  readonly uid: string;
}

/** The additional information of a token. */
interface Credential {
  /** The token's id. */
  readonly id?: string | undefined;
  readonly pod?: Reference | undefined;
  /** The uid is '' if the API does not know the pod's node. */
  readonly node?: Reference | undefined;
}

export function serviceAccountName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** Returns the value of the credential-id extra and of its audit annotation. */
export function credentialId(tokenId: string): string {
  return `JTI=${tokenId}`;
}

/** `uid` is '' for the engine's own components, which act under an account without a token. */
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
