/** Accounts and roles of our own components, nodes and users. Roles come before the bindings that refer to them. */
import { account, clusterRole, clusterRoleBinding, group, inSystemNamespace } from '#operator/objects/accounts.ts';
import { TRANSITION_ACCOUNT } from '#api/machine-types/names.ts';
import { NODES_GROUP } from '#kube/node-user.ts';
import type { Desired } from '#operator/desired.ts';
import { controllerRoles } from '#operator/roles/controllers.ts';
import { nodeRules } from '#operator/roles/node.ts';
import { everybodyRules, peopleRules } from '#operator/roles/users.ts';
import { serviceRoles } from '#operator/roles/services.ts';
import { transitionRules } from '#operator/roles/transition.ts';

const NODE_ROLE = 'selfsame:node';
/** KubeVirt's name. */
const EVERYBODY_ROLE = 'kubevirt.io:default';

export const rbacObjects: readonly Desired[] = [
  ...Object.entries({ ...controllerRoles, ...serviceRoles }).flatMap(([name, rules]) => account(name, rules)),
  ...account(TRANSITION_ACCOUNT, transitionRules.everywhere),
  ...inSystemNamespace(TRANSITION_ACCOUNT, transitionRules.inSystemNamespace),
  clusterRole(NODE_ROLE, nodeRules),
  clusterRoleBinding(NODE_ROLE, group(NODES_GROUP)),
  ...Object.entries(peopleRules).map(([role, rules]) =>
    clusterRole(`kubevirt.io:${role}`, rules, { [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' }),
  ),
  clusterRole(EVERYBODY_ROLE, everybodyRules),
  clusterRoleBinding(EVERYBODY_ROLE, group('system:authenticated')),
];
