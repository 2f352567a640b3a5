/** Accounts and roles of our own components, nodes and users. Roles come before the bindings that refer to them. */
import {
  accountObjects,
  clusterRoleObject,
  clusterRoleBindingObject,
  groupSubject,
  namespacedRoleObjects,
} from '#operator/objects/accounts.ts';
import { TRANSITION_ACCOUNT } from '#api/machine-types/names.ts';
import { NODES_GROUP } from '#kube/node-user.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { controllerRoles } from '#operator/roles/controllers.ts';
import { nodeRules } from '#operator/roles/node.ts';
import { authenticatedRules, userRules } from '#operator/roles/users.ts';
import { serviceRoles } from '#operator/roles/services.ts';
import { transitionRules } from '#operator/roles/transition.ts';

const NODE_ROLE = 'selfsame:node';
/** KubeVirt's name. */
const AUTHENTICATED_ROLE = 'kubevirt.io:default';

export const rbacObjects: readonly DesiredObject[] = [
  ...Object.entries({ ...controllerRoles, ...serviceRoles }).flatMap(([name, rules]) => accountObjects(name, rules)),
  ...accountObjects(TRANSITION_ACCOUNT, transitionRules.everywhere),
  ...namespacedRoleObjects(TRANSITION_ACCOUNT, transitionRules.inSystemNamespace),
  clusterRoleObject(NODE_ROLE, nodeRules),
  clusterRoleBindingObject(NODE_ROLE, groupSubject(NODES_GROUP)),
  ...Object.entries(userRules).map(([role, rules]) =>
    clusterRoleObject(`kubevirt.io:${role}`, rules, { [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' }),
  ),
  clusterRoleObject(AUTHENTICATED_ROLE, authenticatedRules),
  clusterRoleBindingObject(AUTHENTICATED_ROLE, groupSubject('system:authenticated')),
];
