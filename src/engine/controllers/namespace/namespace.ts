/**
 * Namespaces under deletion: deletes everything in them, then removes the namespace's own finalizer. Admission prevents
 * that new objects are created meanwhile (admission/namespace-lifecycle.ts). Conditions report what remains and why.
 */
import type { Reader } from '#client/client.ts';
import { objectKey } from '#client/object-key.ts';
import { DeletionRounds, roundDelayMs, type DeletionCursor } from '#engine/controllers/deletion-round.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import { listRemainingObjects } from '#engine/controllers/remaining-objects.ts';
import {
  namespaceConditions,
  NOTHING_REMAINS,
  type RemainingContent,
} from '#engine/controllers/namespace/namespace-conditions.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import { groupResource, type ResourceType, type Stored } from '#kube/meta.ts';
import type { Registry } from '#engine/registry/registry.ts';
import { timestamp } from '#lib/clock.ts';
import { ANY_KIND, type Recheck } from '#runtime/decision-reads.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { MAX_CHANGES, EMPTY_PLAN, type Change, type FailedChange, type Plan } from '#runtime/plan.ts';

const FINALIZER = 'kubernetes';

/** A plan requests an earlier reconcile while objects remain. */
const CONTENT_RECHECK: Recheck = {
  type: ANY_KIND,
  everyMs: 60_000,
  because: 'a namespace may contain objects of every kind, and its content is read only while it is being deleted',
};

export interface ContentItem {
  readonly type: ResourceType;
  readonly object: Stored;
}

export interface NamespaceWorld {
  readonly namespace: Stored<Namespace>;
  /** The objects that come next and are not under deletion: at most as many as one plan can delete. */
  readonly content: readonly ContentItem[];
  /** The number of objects that were listed, by kind and by finalizer. */
  readonly counts: Pick<RemainingContent, 'resources' | 'finalizers'>;
  /** True if every object was listed and `content` was not cut off. */
  readonly complete: boolean;
  /** The number of complete rounds in a row that found as many objects as the round before. */
  readonly unchangedRounds: number;
  readonly now: string;
}

/** Decides the next step for one namespace. Pure. */
export function decideNamespace(world: NamespaceWorld): Plan {
  const { namespace, content, counts, complete } = world;
  if (namespace.metadata.deletionTimestamp === undefined) return EMPTY_PLAN;
  if (!complete || counts.resources.size > 0) {
    return { changes: content.map(deleteContentItem), continueOnError: true, requeueAfterMs: roundDelayMs(world) };
  }
  return { status: terminatingStatus(world, NOTHING_REMAINS), changes: removeNamespaceFinalizer(namespace) };
}

/**
 * Computes the status after the deletions of a plan, or undefined before everything was listed. Kubernetes lists again
 * for this. Unlike Kubernetes, objects whose deletion was refused count as remaining. Pure.
 */
export function concludeNamespace(
  world: NamespaceWorld,
  failures: readonly FailedChange[],
  refused: readonly string[],
): Plan['status'] {
  if (!world.complete) return undefined;
  const failed = new Set(failures.map(({ change }) => (change.do === 'delete' ? change.uid : '')));
  const resources = new Map(world.counts.resources);
  for (const { type, object } of world.content) {
    const { uid, finalizers = [] } = object.metadata;
    if (finalizers.length > 0 || failed.has(uid)) continue;
    const left = (resources.get(conditionResourceName(type)) ?? 0) - 1;
    if (left > 0) resources.set(conditionResourceName(type), left);
    else resources.delete(conditionResourceName(type));
  }
  return terminatingStatus(world, { resources, finalizers: world.counts.finalizers, refused });
}

function terminatingStatus({ namespace, now }: NamespaceWorld, remaining: RemainingContent): Plan['status'] {
  return { ...namespace.status, conditions: namespaceConditions(namespace.status?.conditions, remaining, now) };
}

/** Returns the resource as the conditions name it. As in Kubernetes, the dot is present even without a group. */
function conditionResourceName({ plural, group }: ResourceType): string {
  return `${plural}.${group}`;
}

function deleteContentItem({ type, object }: ContentItem): Change {
  const { name, namespace, uid } = object.metadata;
  return { do: 'delete', type, name: { name, namespace }, uid, why: `the namespace ${namespace} is being deleted` };
}

function removeNamespaceFinalizer({ metadata, spec }: Stored<Namespace>): Change[] {
  const at = spec?.finalizers?.indexOf(FINALIZER) ?? -1;
  if (at < 0) return [];
  return [
    {
      do: 'patch',
      type: ENGINE_NAMESPACES,
      name: { name: metadata.name },
      uid: metadata.uid,
      subresource: 'finalize',
      patch: { type: 'json', body: removeListItem('/spec/finalizers', at, FINALIZER) },
      why: 'the namespace is empty',
    },
  ];
}

export const namespaceController: EngineController = {
  account: 'namespace-controller',
  start(parts) {
    const { client, clock, registry } = parts;
    const informer = parts.informer(ENGINE_NAMESPACES);
    const rounds = new DeletionRounds(({ type }) => groupResource(type));
    const controller = defineController<NamespaceWorld>({
      name: 'namespace',
      type: ENGINE_NAMESPACES,
      sources: [source(informer)],
      rechecks: [CONTENT_RECHECK],
      async observe(key, { signal }) {
        const namespace = informer.get(key);
        if (namespace?.metadata.deletionTimestamp === undefined) {
          rounds.forget(key);
          return undefined;
        }
        const { uid } = namespace.metadata;
        const { after } = rounds.roundOf(key, uid);
        const found = await listContent(client, { namespace: key, kinds: namespacedKinds(registry), after, signal });
        const count = [...found.counts.resources.values()].reduce((sum, one) => sum + one, 0);
        const { unchangedRounds } = rounds.recordObservation(key, uid, {
          count,
          complete: found.complete,
          last: cursorOf(found.content),
        });
        return { namespace, ...found, unchangedRounds, now: timestamp(clock.now()) };
      },
      decide: decideNamespace,
      conclude: (world, failures) =>
        concludeNamespace(world, failures, rounds.recordFailures(world.namespace.metadata.name, failures)),
      subject: ({ namespace }) => namespace,
    });
    // Events cannot be created in a namespace that is being deleted.
    return startController(controller, { ...parts, events: noEvents });
  },
};

/** Returns every namespaced kind once, in one of its versions. */
function namespacedKinds(registry: Registry): readonly ResourceType[] {
  return registry.collections().filter(({ namespaced, verbs }) => namespaced && verbs.includes('list'));
}

function cursorOf(content: readonly ContentItem[]): DeletionCursor | undefined {
  const last = content.at(-1);
  return last && { kind: groupResource(last.type), key: objectKey(last.object) };
}

interface ContentRange {
  readonly namespace: string;
  readonly kinds: readonly ResourceType[];
  readonly after: DeletionCursor | undefined;
  readonly signal: AbortSignal;
}

async function listContent(
  reader: Reader,
  { namespace, kinds, after, signal }: ContentRange,
): Promise<Pick<NamespaceWorld, 'content' | 'counts' | 'complete'>> {
  const content: ContentItem[] = [];
  const resources = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const counts = { resources, finalizers };
  // -1 if the kind of the cursor is no longer served: the round then starts from the beginning.
  const start = kinds.findIndex((type) => groupResource(type) === after?.kind);
  for (const [i, type] of kinds.entries()) {
    const from = i < start ? AFTER_ALL_KEYS : i === start ? after?.key : undefined;
    const found = await listRemainingObjects(reader, type, {
      namespace,
      atMost: MAX_CHANGES - content.length,
      after: from,
      signal,
    });
    content.push(...found.toDelete.map((object) => ({ type, object })));
    if (found.count > 0) resources.set(conditionResourceName(type), found.count);
    for (const [name, count] of found.finalizers) finalizers.set(name, (finalizers.get(name) ?? 0) + count);
    if (!found.complete) return { content, counts, complete: false };
  }
  return { content, counts, complete: true };
}

/** Sorts after every key. */
const AFTER_ALL_KEYS = '\uffff';
