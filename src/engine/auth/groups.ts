/** The users and groups that Kubernetes defines. */
import type { UserInfo } from '#engine/request/request.ts';

export { NODE_USER_PREFIX, NODES_GROUP as NODES } from '#kube/node-user.ts';

export const MASTERS = 'system:masters';
export const AUTHENTICATED = 'system:authenticated';
export const UNAUTHENTICATED = 'system:unauthenticated';

export const CONTROLLER_MANAGER = 'system:kube-controller-manager';
export const SCHEDULER = 'system:kube-scheduler';

export const ANONYMOUS_USER: UserInfo = { name: 'system:anonymous', groups: [UNAUTHENTICATED] };

/** Adds system:authenticated, unless the groups already contain it or its opposite. */
export function asAuthenticated(user: UserInfo): UserInfo {
  const settled = user.groups.includes(AUTHENTICATED) || user.groups.includes(UNAUTHENTICATED);
  return settled || user.name === ANONYMOUS_USER.name ? user : { ...user, groups: [...user.groups, AUTHENTICATED] };
}
