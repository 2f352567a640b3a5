/**
 * The objects that an administrator must apply before the operator can use its own account: the namespace, the account and
 * its permissions. The operator grants permissions that it does not have itself, which requires the verbs `escalate` and
 * `bind`. Objects that it may change are listed by name; those that it may create cannot be, because a create request has no
 * name yet.
 */
import type { Client } from '#client/client.ts';
import { IDENTITY_GROUP, KUBEVIRT_GROUP, SYSTEM_NAMESPACE } from '#api/names.ts';
import { isApiError } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { groupResource, type Stored } from '#kube/meta.ts';
import { desired, repair, type Desired } from '#operator/desired.ts';
import { CLUSTER_ROLES, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, type PolicyRule } from '#operator/kinds.ts';
import { account, inSystemNamespace } from '#operator/objects/accounts.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { installation } from '#operator/objects/installation.ts';
import { OPERATOR_ACCOUNT } from '#operator/operator-controller.ts';
import { CORE, READ, RECORD_EVENTS, rule, STORAGE, vms, vmSnapshots, volumeSnapshots } from '#operator/roles/rules.ts';

/** The account of the informers that all controllers of a process share, so that each kind is watched once. */
export const INFORMERS_ACCOUNT = 'selfsame-informers';

const RBAC = 'rbac.authorization.k8s.io';
const objects = [...definitions, ...installation];

/** Returns the objects in the order of creation. */
export function bootstrapObjects(): readonly Desired[] {
  return [
    desired(NAMESPACES, { name: SYSTEM_NAMESPACE }),
    ...account(OPERATOR_ACCOUNT, operatorRules()),
    ...inSystemNamespace(OPERATOR_ACCOUNT, [
      rule([...READ, 'create'], CORE, SERVICE_ACCOUNTS.plural),
      rulesForPatch(SERVICE_ACCOUNTS),
      ...[ROLES, ROLE_BINDINGS].flatMap(({ group, plural }) => [
        rule(['create'], group, plural),
        rulesForPatch({ group, plural }),
      ]),
      rule(['escalate'], RBAC, ROLES.plural),
      { ...rule(['bind'], RBAC, ROLES.plural), resourceNames: namesOf(ROLES) },
      vms(['create'], 'kubevirts'),
    ]),
    ...account(INFORMERS_ACCOUNT, informerRules()),
  ];
}

function operatorRules(): PolicyRule[] {
  const types = new Map(objects.map(({ type }) => [groupResource(type), type]));
  const global = [...types.values()].filter(({ namespaced }) => !namespaced);
  return [
    RECORD_EVENTS,
    ...global.flatMap((type) => [rule([...READ, 'create'], type.group, type.plural), rulesForPatch(type)]),
    rule(['escalate'], RBAC, CLUSTER_ROLES.plural),
    { ...rule(['bind'], RBAC, CLUSTER_ROLES.plural), resourceNames: namesOf(CLUSTER_ROLES) },
    rule(READ, CORE, SERVICE_ACCOUNTS.plural),
    rule(READ, RBAC, ROLES.plural, ROLE_BINDINGS.plural),
    vms(READ, 'kubevirts'),
    vms(['update'], 'kubevirts/status'),
  ];
}

function informerRules(): PolicyRule[] {
  const watch = ['list', 'watch'];
  return [
    ...operatorRules().flatMap(({ apiGroups = [], resources = [], verbs }) =>
      verbs.includes('watch') ? [{ apiGroups, resources, verbs: watch }] : [],
    ),
    rule(watch, KUBEVIRT_GROUP, 'virtualmachines', 'virtualmachineinstances', 'virtualmachineinstancemigrations'),
    rule(watch, IDENTITY_GROUP, 'virtualmachineidentities'),
    rule(watch, CORE, 'pods', 'nodes', 'persistentvolumes', 'persistentvolumeclaims', 'namespaces'),
    rule(watch, STORAGE, 'storageclasses'),
    vmSnapshots(watch, 'virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores'),
    // The operator's own rules cover their classes.
    volumeSnapshots(watch, 'volumesnapshots', 'volumesnapshotcontents'),
  ];
}

function rulesForPatch(type: { readonly group: string; readonly plural: string }): PolicyRule {
  return { ...rule(['patch'], type.group, type.plural), resourceNames: namesOf(type) };
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

async function find(client: Client, { type, object }: Desired, signal?: AbortSignal): Promise<Stored | undefined> {
  const { namespace, name = '' } = object.metadata;
  try {
    return await client.get(type, { namespace, name }, { signal });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
