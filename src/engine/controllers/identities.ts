/** The users that the engine's own parts act as. Their permissions are ordinary roles: auth/rbac/defaults/. */
import { AUTHENTICATED, CONTROLLER_MANAGER, MASTERS, SCHEDULER } from '#engine/auth/groups.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import type { UserInfo } from '#engine/request/request.ts';

/** Creates the system namespaces and default roles. Used only while the engine starts. */
export const BOOTSTRAP: UserInfo = { name: 'system:apiserver', groups: [MASTERS, AUTHENTICATED] };

/** Lists and watches on behalf of all controllers, so that each kind is watched once. */
export const INFORMERS: UserInfo = { name: CONTROLLER_MANAGER, groups: [AUTHENTICATED] };

const NAMESPACE = 'kube-system';

/** Returns the user of a controller's account. As in Kubernetes, the scheduler is not a service account. */
export function accountUser(account: string): UserInfo {
  if (account === SCHEDULER) return { name: SCHEDULER, groups: [AUTHENTICATED] };
  return serviceAccountUser(NAMESPACE, { name: account, uid: '' });
}
