/**
 * Everything of ours as an administrator applies it to a cluster: printed, or applied under a field manager of its own. What
 * others have written beside it stays; what an older version of ours had and this one has not goes. Applied again it changes
 * nothing. Kinds of others are made only where they are missing.
 */
import { stringify } from 'yaml';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { isTrue } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { groupResource, isRecord, type KubeObject, type Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { VERSION } from '#lib/version.ts';
import { bootstrapObjects } from '#operator/bootstrap.ts';
import { idOf, type Desired } from '#operator/desired.ts';
import { DEFINITIONS, POLICIES, POLICY_BINDINGS } from '#operator/kinds.ts';
import { clusterObjects, CSI_DRIVERS } from '#operator/objects/cluster.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { afterKinds, beforeKinds } from '#operator/objects/installation.ts';
import { missingWithoutPolicies } from '#operator/policy-support.ts';

export const INSTALL_MANAGER = 'selfsame-install';
/** Of what is only to begin with so. */
const INITIAL_MANAGER = 'selfsame-initial';
const ESTABLISHED_MS = 60_000;
const LOOK_MS = 200;
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

/** In the order in which they are applied. */
export function installObjects(): readonly Desired[] {
  return [...bootstrapObjects(), ...clusterObjects(), ...beforeKinds, ...definitions, ...afterKinds];
}

/**
 * Returns the manifest for kubectl apply. The operator makes what is made only where it is missing, and with it objects of
 * those kinds: kubectl refuses objects of kinds that the cluster does not serve yet.
 */
export function installYaml(): string {
  const documents = installObjects()
    .filter((wanted) => wanted.once !== true && !isOfForeignKind(wanted))
    .map(({ object }) => stringify(said(object), { lineWidth: 0 }));
  const head = [
    `# Selfsame ${VERSION}: apply with kubectl apply --server-side --force-conflicts -f -`,
    '# The KubeVirt object, and kinds of others that the cluster lacks, are made by the controllers.',
  ];
  return `${head.join('\n')}\n${documents.map((text) => `---\n${text}`).join('')}`;
}

const FOREIGN_KINDS = new Set(definitions.filter(({ once }) => once).map(({ object }) => object.metadata.name));

/** Reports whether the kind of the object belongs to somebody else, and may be missing (foreign-definition.ts). */
export function isOfForeignKind({ type }: Desired): boolean {
  return FOREIGN_KINDS.has(groupResource(type));
}

export interface InstallParts {
  /** As an administrator. */
  readonly client: Client;
  readonly clock: Clock;
  readonly dryRun: boolean;
  /** A line for each object, and what is missing. */
  say(line: string): void;
}

export type Outcome = 'created' | 'configured' | 'unchanged';

/** How many objects were changed. Throws ApiError at the first that cannot be applied; applied again it goes on. */
export async function applyInstallation(parts: InstallParts): Promise<number> {
  const { client, say } = parts;
  const hasPolicies = await serves(client, POLICIES);
  const hasDrivers = await serves(client, CSI_DRIVERS);
  if (!hasPolicies) say(`warning: ${missingWithoutPolicies}`);
  if (!hasDrivers) say('note: this API server has no CSIDrivers; volumes are attached by nobody, and that is fine');
  const isServed = ({ type }: Desired) =>
    (hasPolicies || (type !== POLICIES && type !== POLICY_BINDINGS)) && (hasDrivers || type !== CSI_DRIVERS);
  let changed = 0;
  const apply = async (all: readonly Desired[]) => {
    for (const wanted of all.filter(isServed)) {
      const outcome = await applyOne(wanted, parts);
      if (outcome !== 'unchanged') changed++;
      say(`${idOf(wanted)} ${outcome}${parts.dryRun ? ' (dry run)' : ''}`);
    }
  };
  await apply([...bootstrapObjects(), ...clusterObjects(), ...beforeKinds, ...definitions]);
  // Nothing of a kind can be made before it is served; in a dry run it may never be.
  if (!parts.dryRun) await established(parts);
  const isOfNewKind = ({ once }: Desired) => parts.dryRun && once === true;
  await apply(afterKinds.filter((wanted) => !isOfNewKind(wanted)));
  return changed;
}

async function serves(client: Pick<Client, 'list'>, type: Desired['type']): Promise<boolean> {
  try {
    await client.list(type, { limit: 1 });
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

async function applyOne(wanted: Desired, { client, dryRun }: InstallParts): Promise<Outcome> {
  const { type, object, once = false } = wanted;
  const present = await find(client, wanted);
  const options = { fieldManager: INSTALL_MANAGER, dryRun };
  if (present !== undefined && once) return 'unchanged';
  try {
    if (present === undefined && (once || wanted.initialAnnotations !== undefined)) {
      await client.create(type, await complete(wanted, client), { ...options, fieldManager: INITIAL_MANAGER });
      // What is not to be kept is another manager's: applied again, it stays.
      if (!once && !dryRun) await client.apply(type, said(object), { ...options, force: true });
      return 'created';
    }
    const applied = await client.apply(type, said(object), { ...options, force: true });
    if (present === undefined) return 'created';
    return deepEqual(contentOf(applied), contentOf(present)) ? 'unchanged' : 'configured';
  } catch (error) {
    // In a dry run the namespace or the kind of what is to be made may be missing.
    if (dryRun && isApiError(error, 'NotFound')) return 'created';
    throw error;
  }
}

/** Others report how it goes meanwhile. */
function contentOf(object: Stored): unknown {
  const { labels, annotations } = object.metadata;
  return { ...object, metadata: { labels, annotations }, status: undefined };
}

/** As it is made: our class is the default where there is none yet. */
async function complete({ type, object, initialAnnotations }: Desired, client: Client): Promise<KubeObject> {
  const isDefault = ({ metadata }: KubeObject) => metadata.annotations?.[DEFAULT_CLASS] === 'true';
  const hasDefault = type === STORAGE_CLASSES && (await client.list(STORAGE_CLASSES)).items.some(isDefault);
  const added = hasDefault ? {} : initialAnnotations;
  return { ...object, metadata: { ...object.metadata, annotations: { ...added, ...object.metadata.annotations } } };
}

/**
 * What an object says, without what it says by being empty: kube-apiserver drops that, and would find a change in it each
 * time. That nothing is there that should not be, the operator sees to.
 */
export function said<T extends KubeObject>(object: T): T {
  return withoutEmpty(object) as T;
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(
    ([, field]) => field !== null && !(Array.isArray(field) && field.length === 0),
  );
  return Object.fromEntries(kept.map(([key, field]) => [key, withoutEmpty(field)]));
}

async function established({ client, clock }: InstallParts): Promise<void> {
  const late = clock.elapsed() + ESTABLISHED_MS;
  const names = definitions.map(({ object }) => object.metadata.name ?? '');
  for (;;) {
    const { items } = await client.list(DEFINITIONS);
    const served = new Set(
      items.filter(({ status }) => isTrue(status?.conditions, 'Established')).map(({ metadata }) => metadata.name),
    );
    const missing = names.filter((name) => !served.has(name));
    if (missing.length === 0) return;
    if (clock.elapsed() > late) throw new Error(`Cannot install: ${missing.join(', ')} are not established in time`);
    await delay(clock, LOOK_MS, new AbortController());
  }
}

async function find(client: Client, { type, object }: Desired): Promise<Stored | undefined> {
  const { namespace, name = '' } = object.metadata;
  try {
    return await client.get(type, { namespace, name });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
