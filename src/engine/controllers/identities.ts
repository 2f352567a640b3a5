/** Who the engine's own parts are to its API. Their rights are roles like any others: auth/rbac/defaults/. */
import { AUTHENTICATED, CONTROLLER_MANAGER, MASTERS, SCHEDULER } from '#engine/auth/groups.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { UserInfo } from '#engine/request.ts';

/** Makes what everything else stands on: system namespaces, default roles. Used at the start only. */
export const BOOTSTRAP: UserInfo = { name: 'system:apiserver', groups: [MASTERS, AUTHENTICATED] };

/** Reads for all controllers, so that each kind is watched once. */
export const INFORMERS: UserInfo = { name: CONTROLLER_MANAGER, groups: [AUTHENTICATED] };

const NAMESPACE = 'kube-system';

/** The user of a controller's account; the scheduler is no service account, as in Kubernetes. */
export function accountUser(account: string): UserInfo {
  if (account === SCHEDULER) return { name: SCHEDULER, groups: [AUTHENTICATED] };
  return serviceAccountUser(NAMESPACE, { name: account, uid: '' });
}
