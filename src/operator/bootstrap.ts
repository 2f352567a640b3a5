/**
 * The objects that an administrator must apply before the operator can use its own account: the namespace, the account
 * and its permissions. The operator grants permissions that it does not have itself, which requires the verbs
 * `escalate` and `bind`. Objects that it may change are listed by name; those that it may create cannot be, because a
 * create request has no name yet.
 */
import type { Client } from '#client/client.ts';
import { IDENTITY_GROUP, KUBEVIRT_GROUP, SYSTEM_NAMESPACE } from '#api/names.ts';
import { isApiError } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { groupResource, type Stored } from '#kube/meta.ts';
import { desiredObject, repair, type DesiredObject } from '#operator/desired.ts';
import { CLUSTER_ROLES, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, type PolicyRule } from '#kube/cluster-kinds.ts';
import { accountObjects, namespacedRoleObjects } from '#operator/objects/accounts.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';
import { OPERATOR_ACCOUNT } from '#operator/operator-controller.ts';
import {
  CORE,
  READ_VERBS,
  RECORD_EVENTS_RULE,
  networkDefinitionRule,
  networkRule,
  policyRule,
  STORAGE,
  vmRule,
  vmSnapshotRule,
  volumeSnapshotRule,
} from '#operator/roles/rules.ts';

/** The account of the informers that all controllers of a process share, so that each kind is watched once. */
export const INFORMERS_ACCOUNT = 'selfsame-informers';

const RBAC = 'rbac.authorization.k8s.io';
const objects = [...definitions, ...maintainedObjects];

/** Returns the objects in the order of creation. */
export function bootstrapObjects(): readonly DesiredObject[] {
  return [
    desiredObject(NAMESPACES, { name: SYSTEM_NAMESPACE }),
    ...accountObjects(OPERATOR_ACCOUNT, operatorRules()),
    ...namespacedRoleObjects(OPERATOR_ACCOUNT, [
      policyRule([...READ_VERBS, 'create'], CORE, SERVICE_ACCOUNTS.plural),
      patchRule(SERVICE_ACCOUNTS),
      ...[ROLES, ROLE_BINDINGS].flatMap(({ group, plural }) => [
        policyRule(['create'], group, plural),
        patchRule({ group, plural }),
      ]),
      policyRule(['escalate'], RBAC, ROLES.plural),
      { ...policyRule(['bind'], RBAC, ROLES.plural), resourceNames: namesOf(ROLES) },
      vmRule(['create'], 'kubevirts'),
    ]),
    ...accountObjects(INFORMERS_ACCOUNT, informerRules()),
  ];
}

function operatorRules(): PolicyRule[] {
  const types = new Map(objects.map(({ type }) => [groupResource(type), type]));
  const global = [...types.values()].filter(({ namespaced }) => !namespaced);
  return [
    RECORD_EVENTS_RULE,
    ...global.flatMap((type) => [policyRule([...READ_VERBS, 'create'], type.group, type.plural), patchRule(type)]),
    policyRule(['escalate'], RBAC, CLUSTER_ROLES.plural),
    { ...policyRule(['bind'], RBAC, CLUSTER_ROLES.plural), resourceNames: namesOf(CLUSTER_ROLES) },
    policyRule(READ_VERBS, CORE, SERVICE_ACCOUNTS.plural),
    policyRule(READ_VERBS, RBAC, ROLES.plural, ROLE_BINDINGS.plural),
    vmRule(READ_VERBS, 'kubevirts'),
    vmRule(['update'], 'kubevirts/status'),
  ];
}

function informerRules(): PolicyRule[] {
  const watch = ['list', 'watch'];
  return [
    ...operatorRules().flatMap(({ apiGroups = [], resources = [], verbs }) =>
      verbs.includes('watch') ? [{ apiGroups, resources, verbs: watch }] : [],
    ),
    policyRule(watch, KUBEVIRT_GROUP, 'virtualmachines', 'virtualmachineinstances', 'virtualmachineinstancemigrations'),
    policyRule(watch, IDENTITY_GROUP, 'virtualmachineidentities'),
    networkRule(watch, 'guestnetworks', 'networkaddresses'),
    networkDefinitionRule(watch),
    policyRule(
      watch,
      CORE,
      'pods',
      'nodes',
      'persistentvolumes',
      'persistentvolumeclaims',
      'namespaces',
      'resourcequotas',
    ),
    policyRule(watch, STORAGE, 'storageclasses'),
    vmSnapshotRule(watch, 'virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores'),
    // The operator's own rules cover their classes.
    volumeSnapshotRule(watch, 'volumesnapshots', 'volumesnapshotcontents'),
  ];
}

function patchRule(type: { readonly group: string; readonly plural: string }): PolicyRule {
  return { ...policyRule(['patch'], type.group, type.plural), resourceNames: namesOf(type) };
}

function namesOf(kind: { readonly group: string; readonly plural: string }): string[] {
  // Objects that are created once belong to the administrator afterwards.
  const own = objects.filter(({ type, once }) => once !== true && groupResource(type) === groupResource(kind));
  return [...new Set(own.map(({ object }) => object.metadata.name ?? ''))];
}

/** Applies the objects as an administrator. A repeated call changes only what differs. */
export async function applyBootstrap(client: Client, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
  for (const wanted of bootstrapObjects()) {
    const change = repair(wanted, await find(client, wanted, signal));
    if (change?.do === 'create') await client.create(change.type, change.object, { signal });
    if (change?.do === 'patch') await client.patch(change.type, change.name, change.patch, { signal });
  }
}

async function find(
  client: Client,
  { type, object }: DesiredObject,
  signal?: AbortSignal,
): Promise<Stored | undefined> {
  const { namespace, name = '' } = object.metadata;
  try {
    return await client.get(type, { namespace, name }, { signal });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
