/**
 * Creates the default roles and bindings (auth/rbac/defaults/). Each start creates those that are missing and adds rules
 * and subjects that were removed. If all are complete, a start costs only a few list requests.
 */
import type { Client } from '#client/client.ts';
import { DEFAULT_POLICY } from '#engine/auth/rbac/defaults/default-policy.ts';
import {
  RBAC_CLUSTER_ROLE_BINDINGS,
  RBAC_CLUSTER_ROLES,
  RBAC_ROLE_BINDINGS,
  RBAC_ROLES,
  RBAC_GROUP,
} from '#engine/auth/rbac/policy.ts';
import { repairBinding, repairRole, type Repair } from '#engine/auth/rbac/reconcile.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';

/** Attempts per start. Another one is needed only if another client writes at the same time. */
const MAX_ATTEMPTS = 3;

/**
 * Creates and repairs all default roles and bindings. Their namespaces must exist. `client` must be allowed to grant
 * every permission (system:masters).
 */
export async function ensureRbacDefaults(client: Client, log: Log): Promise<void> {
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = DEFAULT_POLICY;
  // Roles first, so that no binding refers to a missing role.
  await Promise.all([
    ensureDefaults(client, log, { type: RBAC_CLUSTER_ROLES, wanted: clusterRoles, repair: repairRole }),
    ensureDefaults(client, log, { type: RBAC_ROLES, wanted: roles, repair: repairRole }),
  ]);
  await Promise.all([
    ensureDefaults(client, log, {
      type: RBAC_CLUSTER_ROLE_BINDINGS,
      wanted: clusterRoleBindings,
      repair: repairBinding,
    }),
    ensureDefaults(client, log, { type: RBAC_ROLE_BINDINGS, wanted: roleBindings, repair: repairBinding }),
  ]);
}

interface Defaults<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly wanted: readonly T[];
  repair(present: T, wanted: T): Repair<T>;
}

async function ensureDefaults<T extends KubeObject>(client: Client, log: Log, defaults: Defaults<T>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const present = await listPresent(client, defaults);
    // In parallel: the writes share their commits to disk, so that a new cluster is ready sooner.
    const outcomes = await Promise.allSettled(
      defaults.wanted.map((wanted) => ensureDefault(client, log, defaults, wanted, present.get(objectId(wanted)))),
    );
    const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as Error] : []));
    const fatal = errors.find((error) => attempt >= MAX_ATTEMPTS || !isConcurrentChange(error));
    if (fatal !== undefined) throw fatal;
    if (errors.length === 0) return;
  }
}

/** Returns the existing objects by namespace and name. Only namespaces with defaults are listed. */
async function listPresent<T extends KubeObject>(
  client: Client,
  { type, wanted }: Defaults<T>,
): Promise<Map<string, Stored<T>>> {
  const namespaces = [...new Set(wanted.map(({ metadata }) => metadata.namespace))];
  const lists = await Promise.all(
    namespaces.map((namespace) => client.list(type, namespace === undefined ? {} : { namespace })),
  );
  return new Map(lists.flatMap(({ items }) => items).map((item) => [objectId(item), item]));
}

async function ensureDefault<T extends KubeObject>(
  client: Client,
  log: Log,
  { type, repair }: Defaults<T>,
  wanted: T,
  present: Stored<T> | undefined,
): Promise<void> {
  const action = present === undefined ? 'create' : repair(present, wanted);
  if (action === 'none') return;
  if (typeof action === 'object') {
    await client.update(type, action.update);
    log.info({ kind: type.kind, object: objectId(wanted) }, `restored a default object of ${RBAC_GROUP}`);
    return;
  }
  if (present !== undefined) {
    const { name, namespace, uid } = present.metadata;
    await client.delete(type, { name, ...(namespace === undefined ? {} : { namespace }) }, { uid });
  }
  await client.create(type, wanted);
}

/** Reports whether another client changed the object first. The next attempt sees that change. */
function isConcurrentChange(error: unknown): boolean {
  return ['AlreadyExists', 'Conflict', 'NotFound'].some((reason) => isApiError(error, reason));
}

function objectId({ metadata: { namespace = '', name = '' } }: KubeObject): string {
  return `${namespace}/${name}`;
}
