/**
 * What an administrator must apply before the operator can act under its own account: the namespace, the account and
 * its rights. It hands out rights that it does not hold itself, which takes the verbs `escalate` and `bind`. What it may
 * change is named one by one; what it may create cannot be, for a request to create has no name yet.
 */
import type { Client } from '#client/client.ts';
import { IDENTITY_GROUP, KUBEVIRT_GROUP, SYSTEM_NAMESPACE } from '#api/names.ts';
import { isApiError } from '#kube/api-error.ts';
import { groupResource, type Stored } from '#kube/meta.ts';
import { desired, repair, type Desired } from '#operator/desired.ts';
import { CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, type PolicyRule } from '#operator/kinds.ts';
import { account, inSystemNamespace } from '#operator/objects/accounts.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { installation } from '#operator/objects/installation.ts';
import { OPERATOR_ACCOUNT } from '#operator/operator-controller.ts';
import { CORE, READ, RECORD_EVENTS, rule, STORAGE, vms, vmSnapshots, volumeSnapshots } from '#operator/roles/rules.ts';

/** Reads for all of our controllers in one process, so that each kind is watched once. */
export const INFORMERS_ACCOUNT = 'selfsame-informers';

const RBAC = 'rbac.authorization.k8s.io';
const objects = [...definitions, ...installation];

/** In the order in which they are applied. */
export function bootstrapObjects(): readonly Desired[] {
  return [
    desired(NAMESPACES, { name: SYSTEM_NAMESPACE }),
    ...account(OPERATOR_ACCOUNT, operatorRules()),
    ...inSystemNamespace(OPERATOR_ACCOUNT, [
      rule([...READ, 'create'], CORE, SERVICE_ACCOUNTS.plural),
      patching(SERVICE_ACCOUNTS),
      ...[ROLES, ROLE_BINDINGS].flatMap(({ group, plural }) => [
        rule(['create'], group, plural),
        patching({ group, plural }),
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
    ...global.flatMap((type) => [rule([...READ, 'create'], type.group, type.plural), patching(type)]),
    rule(['escalate'], RBAC, CLUSTER_ROLES.plural),
    { ...rule(['bind'], RBAC, CLUSTER_ROLES.plural), resourceNames: namesOf(CLUSTER_ROLES) },
    rule(READ, CORE, SERVICE_ACCOUNTS.plural),
    rule(READ, RBAC, ROLES.plural, ROLE_BINDINGS.plural),
    vms(READ, 'kubevirts'),
    vms(['update'], 'kubevirts/status'),
  ];
}

function informerRules(): PolicyRule[] {
  const look = ['list', 'watch'];
  return [
    ...operatorRules().flatMap(({ apiGroups = [], resources = [], verbs }) =>
      verbs.includes('watch') ? [{ apiGroups, resources, verbs: look }] : [],
    ),
    rule(look, KUBEVIRT_GROUP, 'virtualmachines', 'virtualmachineinstances', 'virtualmachineinstancemigrations'),
    rule(look, IDENTITY_GROUP, 'virtualmachineidentities'),
    rule(look, CORE, 'pods', 'nodes', 'persistentvolumes', 'persistentvolumeclaims', 'namespaces'),
    rule(look, STORAGE, 'storageclasses'),
    vmSnapshots(look, 'virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores'),
    // Their classes are among what the operator keeps.
    volumeSnapshots(look, 'volumesnapshots', 'volumesnapshotcontents'),
  ];
}

function patching(type: { readonly group: string; readonly plural: string }): PolicyRule {
  return { ...rule(['patch'], type.group, type.plural), resourceNames: namesOf(type) };
}

function namesOf(kind: { readonly group: string; readonly plural: string }): string[] {
  // What is made only where it is missing belongs to others afterwards.
  const mine = objects.filter(({ type, once }) => once !== true && groupResource(type) === groupResource(kind));
  return [...new Set(mine.map(({ object }) => object.metadata.name ?? ''))];
}

/** Applies them, as somebody who may do everything. Done again, it changes only what is not as it should be. */
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
