/**
 * Prevents privilege escalation: writing a role requires all of its permissions or the verb `escalate`, writing a
 * binding requires all permissions of its role or the verb `bind`. Members of system:masters may do everything anyway.
 */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { findUncovered } from '#engine/auth/rbac/covers.ts';
import { describeRules } from '#engine/auth/rbac/describe-rules.ts';
import { missingRolesText } from '#engine/auth/rbac/missing-roles.ts';
import {
  type RbacBinding,
  RBAC_CLUSTER_ROLE_BINDINGS,
  RBAC_CLUSTER_ROLES,
  type RbacClusterRole,
  type RbacRule,
  RBAC_GROUP,
  RBAC_ROLE_BINDINGS,
  RBAC_ROLES,
  type RoleRef,
} from '#engine/auth/rbac/policy.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { forbidden, notFound } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { goQuotedList } from '#kube/go/go-text.ts';
import { groupResource, type KubeObject } from '#kube/meta.ts';

type Check = (authorizer: RbacAuthorizer, attributes: AdmissionAttributes, object: KubeObject) => void;

const CHECKS: ReadonlyMap<string, Check> = new Map([
  [groupResource(RBAC_ROLES), checkRole],
  [groupResource(RBAC_CLUSTER_ROLES), checkRole],
  [groupResource(RBAC_ROLE_BINDINGS), checkBinding],
  [groupResource(RBAC_CLUSTER_ROLE_BINDINGS), checkBinding],
]);

const EVERYTHING: readonly RbacRule[] = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { nonResourceURLs: ['*'], verbs: ['*'] },
];

export function rbacEscalation(authorizer: RbacAuthorizer): ValidatingStep {
  return (attributes) => {
    const { operation, resource, user, object, oldObject } = attributes;
    if (operation !== 'CREATE' && operation !== 'UPDATE') return;
    const check = CHECKS.get(resource.collection);
    if (check === undefined || object === undefined || user.groups.includes(MASTERS)) return;
    if (oldObject !== undefined && changesOwnershipOnly(object, oldObject)) return;
    check(authorizer, attributes, object);
  };
}

/** Reports whether only ownership changes, as the garbage collector does. */
function changesOwnershipOnly(object: KubeObject, old: KubeObject): boolean {
  const { ownerReferences, finalizers, managedFields } = old.metadata;
  return deepEqual({ ...object, metadata: { ...object.metadata, ownerReferences, finalizers, managedFields } }, old);
}

function checkRole(authorizer: RbacAuthorizer, attributes: AdmissionAttributes, object: KubeObject): void {
  if (mayEscalate(authorizer, attributes)) return;
  const role = object as RbacClusterRole;
  assertHeld(authorizer, attributes, role.rules ?? []);
  // An aggregation rule collects all roles with a label, including future ones, so only a user with all permissions may
  // set it.
  if (!aggregates(role) && !aggregates(attributes.oldObject)) return;
  const { rules } = authorizer.heldRules(attributes.user, attributes.namespace);
  if (findUncovered(rules, EVERYTHING)?.length === 0) return;
  throw forbidden(attributes.resource, nameOf(object), 'must have cluster-admin privileges to use the aggregationRule');
}

function aggregates(role: RbacClusterRole | undefined): boolean {
  return (role?.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0;
}

/** As for every create request, the name is not known yet. */
function mayEscalate(authorizer: RbacAuthorizer, attributes: AdmissionAttributes): boolean {
  const { operation, resource, namespace, name, user } = attributes;
  return authorizer.authorize(user, {
    verb: 'escalate',
    group: RBAC_GROUP,
    version: '*',
    resource: resource.plural,
    subresource: '',
    namespace,
    name: operation === 'CREATE' ? '' : name,
  }).allowed;
}

function checkBinding(authorizer: RbacAuthorizer, attributes: AdmissionAttributes, object: KubeObject): void {
  const { roleRef } = object as RbacBinding;
  const { namespace } = attributes;
  if (mayBind(authorizer, attributes, roleRef)) return;
  const rules = authorizer.rulesOfRole(roleRef, namespace);
  if (rules === undefined) throw notFound(roleRef.kind === 'Role' ? RBAC_ROLES : RBAC_CLUSTER_ROLES, roleRef.name);
  assertHeld(authorizer, attributes, rules);
}

/**
 * Checked in the namespace of the binding, so that a user can be allowed to bind a cluster role in one namespace only.
 */
function mayBind(
  authorizer: RbacAuthorizer,
  { user, namespace }: AdmissionAttributes,
  { apiGroup, kind, name }: RoleRef,
): boolean {
  const { plural } = kind === 'Role' ? RBAC_ROLES : RBAC_CLUSTER_ROLES;
  const attributes = {
    verb: 'bind',
    group: apiGroup,
    version: '*',
    resource: plural,
    subresource: '',
    namespace,
    name,
  };
  return authorizer.authorize(user, attributes).allowed;
}

function assertHeld(
  authorizer: RbacAuthorizer,
  { resource, namespace, user, object }: AdmissionAttributes,
  wanted: readonly RbacRule[],
): void {
  const { rules, missing: rolesMissing } = authorizer.heldRules(user, namespace);
  const missing = findUncovered(rules, wanted);
  if (missing?.length === 0) return;
  const who = `user ${JSON.stringify(user.name)} (groups=${goQuotedList(user.groups)})`;
  const what =
    missing === undefined
      ? 'more RBAC permissions than can be compared with those currently held'
      : `RBAC permissions not currently held:\n${describeRules(missing)}`;
  throw forbidden(resource, nameOf(object), `${who} is attempting to grant ${what}${resolutionErrors(rolesMissing)}`);
}

function resolutionErrors(missing: readonly RoleRef[]): string {
  if (missing.length === 0) return '';
  return `; resolution errors: [${missingRolesText(missing, 'plural')}]`;
}

function nameOf(object: KubeObject | undefined): string {
  return object?.metadata.name ?? '';
}
