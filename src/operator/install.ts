/**
 * Installs Selfsame on an existing cluster: prints a manifest, or applies all objects with a field manager of its own.
 * Fields of other managers are kept; fields of an older version that this one does not have are removed. A repeated
 * installation changes nothing. Third-party kinds are created only if they are missing.
 */
import { stringify } from 'yaml';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { isTrue } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { STORAGE_CLASSES, CUSTOM_RESOURCE_DEFINITIONS } from '#kube/core-kinds.ts';
import { groupResource, isRecord, type KubeObject, type Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { VERSION } from '#lib/version.ts';
import { bootstrapObjects } from '#operator/bootstrap.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS } from '#api/network/guest-network.ts';
import { desiredObject, idOf, type DesiredObject } from '#operator/desired.ts';
import { POLICIES, POLICY_BINDINGS } from '#kube/cluster-kinds.ts';
import { clusterObjects, CSI_DRIVERS } from '#operator/objects/cluster.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { objectsAfterKinds, objectsBeforeKinds } from '#operator/objects/installation.ts';
import { POLICIES_MISSING_MESSAGE } from '#operator/policy-support.ts';
import { isDefaultClass } from '#kube/default-class.ts';

export const INSTALL_MANAGER = 'selfsame-install';
/** The field manager of values that are set at creation only. */
const INITIAL_MANAGER = 'selfsame-initial';
const ESTABLISHED_TIMEOUT_MS = 60_000;
const POLL_MS = 200;

/** Returns all objects in the order of creation. */
export function installObjects(): readonly DesiredObject[] {
  return [...bootstrapObjects(), ...clusterObjects(), ...objectsBeforeKinds, ...definitions, ...objectsAfterKinds];
}

/**
 * Returns the manifest for kubectl apply. It leaves out objects that are created only if they are missing, and objects
 * of such kinds, because kubectl refuses objects of kinds that the cluster does not serve yet. The operator creates
 * them.
 */
export function installYaml(): string {
  const documents = installObjects()
    .filter((wanted) => wanted.once !== true && !isOfForeignKind(wanted))
    .map(({ object }) => stringify(dropEmptyFields(object), { lineWidth: 0 }));
  const head = [
    `# Selfsame ${VERSION}: apply with kubectl apply --server-side --force-conflicts -f -`,
    '# The controllers create the KubeVirt object and third-party kinds that the cluster lacks.',
  ];
  return `${head.join('\n')}\n${documents.map((text) => `---\n${text}`).join('')}`;
}

const FOREIGN_KINDS = new Set(definitions.filter(({ once }) => once).map(({ object }) => object.metadata.name));

/** Reports whether the object is of a third-party kind, which may be missing (foreign-definition.ts). */
export function isOfForeignKind({ type }: DesiredObject): boolean {
  return FOREIGN_KINDS.has(groupResource(type));
}

interface InstallParts {
  /** A client with the permissions of an administrator. */
  readonly client: Client;
  readonly clock: Clock;
  readonly dryRun: boolean;
  /** The subnets of the GuestNetwork `default`, which is created if it is absent. */
  readonly subnets?: readonly string[] | undefined;
  /** Prints a line for each object, and warnings. */
  print(line: string): void;
}

type ApplyResult = 'created' | 'configured' | 'unchanged';

/**
 * Returns the number of changed objects. Throws ApiError at the first object that cannot be applied; a repeated call
 * continues.
 */
export async function applyInstallation(parts: InstallParts): Promise<number> {
  const { client, print } = parts;
  const hasPolicies = await isKindServed(client, POLICIES);
  const hasDrivers = await isKindServed(client, CSI_DRIVERS);
  if (!hasPolicies) print(`warning: ${POLICIES_MISSING_MESSAGE}`);
  if (!hasDrivers)
    print(
      'note: this API server does not serve CSIDrivers; volumes of Selfsame need not be attached, so this has no effect',
    );
  const isServed = ({ type }: DesiredObject) =>
    (hasPolicies || (type !== POLICIES && type !== POLICY_BINDINGS)) && (hasDrivers || type !== CSI_DRIVERS);
  let changed = 0;
  const apply = async (all: readonly DesiredObject[]) => {
    for (const wanted of all.filter(isServed)) {
      const outcome = await applyOne(wanted, parts);
      if (outcome !== 'unchanged') changed++;
      print(`${idOf(wanted)} ${outcome}${parts.dryRun ? ' (dry run)' : ''}`);
    }
  };
  await apply([...bootstrapObjects(), ...clusterObjects(), ...objectsBeforeKinds, ...definitions]);
  // Objects of a kind can be created only when it is served; in a dry run it may never be.
  if (!parts.dryRun) await waitUntilEstablished(parts);
  const isOfNewKind = ({ once }: DesiredObject) => parts.dryRun && once === true;
  const network = parts.subnets === undefined ? [] : [guestNetworkObject(parts.subnets)];
  await apply([...objectsAfterKinds, ...network].filter((wanted) => !isOfNewKind(wanted)));
  return changed;
}

/** Returns the default network, which belongs to the administrator once it exists. */
function guestNetworkObject(subnets: readonly string[]): DesiredObject {
  return desiredObject(GUEST_NETWORKS, { name: DEFAULT_NETWORK }, { spec: { subnets: [...subnets] } }, { once: true });
}

async function isKindServed(client: Pick<Client, 'list'>, type: DesiredObject['type']): Promise<boolean> {
  try {
    await client.list(type, { limit: 1 });
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

async function applyOne(wanted: DesiredObject, { client, dryRun }: InstallParts): Promise<ApplyResult> {
  const { type, object, once = false } = wanted;
  const present = await find(client, wanted);
  const options = { fieldManager: INSTALL_MANAGER, dryRun };
  if (present !== undefined && once) return 'unchanged';
  try {
    if (present === undefined && (once || wanted.initialAnnotations !== undefined)) {
      await client.create(type, await completeObject(wanted, client), { ...options, fieldManager: INITIAL_MANAGER });
      // Initial values have another field manager, so that later applies do not remove them.
      if (!once && !dryRun) await client.apply(type, dropEmptyFields(object), { ...options, force: true });
      return 'created';
    }
    const applied = await client.apply(type, dropEmptyFields(object), { ...options, force: true });
    if (present === undefined) return 'created';
    return deepEqual(contentOf(applied), contentOf(present)) ? 'unchanged' : 'configured';
  } catch (error) {
    // In a dry run the namespace or the kind of a new object may be missing.
    if (dryRun && isApiError(error, 'NotFound')) return 'created';
    throw error;
  }
}

/** Returns the object without its status, which other components update. */
function contentOf(object: Stored): unknown {
  const { labels, annotations } = object.metadata;
  return { ...object, metadata: { labels, annotations }, status: undefined };
}

/** Returns the object to create. Our StorageClass becomes the default if there is no default yet. */
async function completeObject(
  { type, object, initialAnnotations }: DesiredObject,
  client: Client,
): Promise<KubeObject> {
  const hasDefault = type === STORAGE_CLASSES && (await client.list(STORAGE_CLASSES)).items.some(isDefaultClass);
  const added = hasDefault ? {} : initialAnnotations;
  return { ...object, metadata: { ...object.metadata, annotations: { ...added, ...object.metadata.annotations } } };
}

/**
 * Removes empty fields: kube-apiserver drops them, so that each apply would find a change. The operator ensures that
 * fields which should be empty are.
 */
function dropEmptyFields<T extends KubeObject>(object: T): T {
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

async function waitUntilEstablished({ client, clock }: InstallParts): Promise<void> {
  const deadline = clock.elapsed() + ESTABLISHED_TIMEOUT_MS;
  const names = definitions.map(({ object }) => object.metadata.name ?? '');
  for (;;) {
    const { items } = await client.list(CUSTOM_RESOURCE_DEFINITIONS);
    const served = new Set(
      items.filter(({ status }) => isTrue(status?.conditions, 'Established')).map(({ metadata }) => metadata.name),
    );
    const missing = names.filter((name) => !served.has(name));
    if (missing.length === 0) return;
    if (clock.elapsed() > deadline) {
      throw new Error(
        `Cannot install: ${missing.join(', ')} not established after ${ESTABLISHED_TIMEOUT_MS / 1000} s; check the conditions of these CustomResourceDefinitions`,
      );
    }
    await delay(clock, POLL_MS, new AbortController());
  }
}

async function find(client: Client, { type, object }: DesiredObject): Promise<Stored | undefined> {
  const { namespace, name = '' } = object.metadata;
  try {
    return await client.get(type, { namespace, name });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
