/**
 * The roles and bindings that a cluster starts with (auth/rbac/defaults/): at each start, what is missing is made and
 * what was cut down is widened again. When everything is in place, nothing but a few lists is asked for.
 */
import type { Client } from '#client/client.ts';
import { DEFAULT_POLICY } from '#engine/auth/rbac/defaults/default-policy.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, RBAC_GROUP } from '#engine/auth/rbac/policy.ts';
import { repairBinding, repairRole, type Repair } from '#engine/auth/rbac/reconcile.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';

/** Each start is one attempt; somebody who writes at the same moment makes for another. */
const MAX_ATTEMPTS = 3;

/** The namespaces of the roles must be there. `client` must be allowed to grant everything (system:masters). */
export async function ensureRbacDefaults(client: Client, log: Log): Promise<void> {
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = DEFAULT_POLICY;
  // Roles first, so that no binding ever refers to what is not there.
  await Promise.all([
    ensure(client, log, { type: CLUSTER_ROLES, wanted: clusterRoles, repair: repairRole }),
    ensure(client, log, { type: ROLES, wanted: roles, repair: repairRole }),
  ]);
  await Promise.all([
    ensure(client, log, { type: CLUSTER_ROLE_BINDINGS, wanted: clusterRoleBindings, repair: repairBinding }),
    ensure(client, log, { type: ROLE_BINDINGS, wanted: roleBindings, repair: repairBinding }),
  ]);
}

interface Defaults<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly wanted: readonly T[];
  repair(present: T, wanted: T): Repair<T>;
}

async function ensure<T extends KubeObject>(client: Client, log: Log, defaults: Defaults<T>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const present = await presentOf(client, defaults);
    // All at once: they share their commits, and a new cluster is ready sooner.
    const outcomes = await Promise.allSettled(
      defaults.wanted.map((wanted) => ensureOne(client, log, defaults, wanted, present.get(idOf(wanted)))),
    );
    const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as Error] : []));
    const serious = errors.find((error) => attempt >= MAX_ATTEMPTS || !isStale(error));
    if (serious !== undefined) throw serious;
    if (errors.length === 0) return;
  }
}

/** By namespace and name; namespaces without defaults are not looked at. */
async function presentOf<T extends KubeObject>(
  client: Client,
  { type, wanted }: Defaults<T>,
): Promise<Map<string, Stored<T>>> {
  const namespaces = [...new Set(wanted.map(({ metadata }) => metadata.namespace))];
  const lists = await Promise.all(
    namespaces.map((namespace) => client.list(type, namespace === undefined ? {} : { namespace })),
  );
  return new Map(lists.flatMap(({ items }) => items).map((item) => [idOf(item), item]));
}

async function ensureOne<T extends KubeObject>(
  client: Client,
  log: Log,
  { type, repair }: Defaults<T>,
  wanted: T,
  present: Stored<T> | undefined,
): Promise<void> {
  const todo = present === undefined ? 'create' : repair(present, wanted);
  if (todo === 'none') return;
  if (typeof todo === 'object') {
    await client.update(type, todo.update);
    log.info({ kind: type.kind, object: idOf(wanted) }, `widened a default of ${RBAC_GROUP} to what it must have`);
    return;
  }
  if (present !== undefined) {
    const { name, namespace, uid } = present.metadata;
    await client.delete(type, { name, ...(namespace === undefined ? {} : { namespace }) }, { uid });
  }
  await client.create(type, wanted);
}

/** Somebody came first: the next look sees what they did. */
function isStale(error: unknown): boolean {
  return ['AlreadyExists', 'Conflict', 'NotFound'].some((reason) => isApiError(error, reason));
}

function idOf({ metadata: { namespace = '', name = '' } }: KubeObject): string {
  return `${namespace}/${name}`;
}
