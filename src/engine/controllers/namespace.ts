/**
 * Namespaces under deletion: everything in them is deleted, then the namespace itself is let go. Nothing new can come
 * meanwhile (admission/namespace-lifecycle.ts). What is in the way stands in the conditions of the status.
 */
import type { Reader } from '#client/client.ts';
import { objectKey } from '#client/object-key.ts';
import { DeletionRounds, lookAgainMs, type Place } from '#engine/controllers/deletion-round.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import { leftovers } from '#engine/controllers/leftovers.ts';
import { namespaceConditions, NOTHING_REMAINS, type Remaining } from '#engine/controllers/namespace-conditions.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import { groupResource, type ResourceType, type Stored } from '#kube/meta.ts';
import type { Registry } from '#engine/registry/registry.ts';
import { timestamp } from '#lib/clock.ts';
import { ANY_KIND, type Recheck } from '#runtime/decision-reads.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { MAX_CHANGES, NOTHING, type Change, type Failure, type Plan } from '#runtime/plan.ts';

const FINALIZER = 'kubernetes';

/** The plan asks for earlier looks as long as something is left. */
const CONTENT_RECHECK: Recheck = {
  type: ANY_KIND,
  everyMs: 60_000,
  because: 'a namespace may hold objects of every kind, and is looked at only while it is being deleted',
};

export interface Content {
  readonly type: ResourceType;
  readonly object: Stored;
}

export interface NamespaceWorld {
  readonly namespace: Stored<Namespace>;
  /** What is in it, not yet under deletion and in turn: as much as one plan can delete. */
  readonly content: readonly Content[];
  /** All that was seen: how many by kind, and what holds them. */
  readonly seen: Pick<Remaining, 'resources' | 'finalizers'>;
  /** Everything was seen, and all that was in turn is in `content`. */
  readonly complete: boolean;
  /** Looks that saw everything and found as much as the one before. */
  readonly quiet: number;
  readonly now: string;
}

/** Pure. */
export function decideNamespace(world: NamespaceWorld): Plan {
  const { namespace, content, seen, complete } = world;
  if (namespace.metadata.deletionTimestamp === undefined) return NOTHING;
  if (!complete || seen.resources.size > 0) {
    return { changes: content.map(deletion), goOn: true, requeueAfterMs: lookAgainMs(world) };
  }
  return { status: terminatingStatus(world, NOTHING_REMAINS), changes: release(namespace) };
}

/**
 * The status after the deletes: what is left then, which Kubernetes finds out by another list. Unlike there, kinds with
 * refused objects count among what remains. Says nothing before everything was seen. Pure.
 */
export function concludeNamespace(
  world: NamespaceWorld,
  failures: readonly Failure[],
  refused: readonly string[],
): Plan['status'] {
  if (!world.complete) return undefined;
  const failed = new Set(failures.map(({ change }) => (change.do === 'delete' ? change.uid : '')));
  const resources = new Map(world.seen.resources);
  for (const { type, object } of world.content) {
    const { uid, finalizers = [] } = object.metadata;
    if (finalizers.length > 0 || failed.has(uid)) continue;
    const left = (resources.get(nameOf(type)) ?? 0) - 1;
    if (left > 0) resources.set(nameOf(type), left);
    else resources.delete(nameOf(type));
  }
  return terminatingStatus(world, { resources, finalizers: world.seen.finalizers, refused });
}

function terminatingStatus({ namespace, now }: NamespaceWorld, remaining: Remaining): Plan['status'] {
  return { ...namespace.status, conditions: namespaceConditions(namespace.status?.conditions, remaining, now) };
}

/** As the conditions tell it: the dot stands there without a group, too. */
function nameOf({ plural, group }: ResourceType): string {
  return `${plural}.${group}`;
}

function deletion({ type, object }: Content): Change {
  const { name, namespace, uid } = object.metadata;
  return { do: 'delete', type, name: { name, namespace }, uid, why: `the namespace ${namespace} is being deleted` };
}

function release({ metadata, spec }: Stored<Namespace>): Change[] {
  const at = spec?.finalizers?.indexOf(FINALIZER) ?? -1;
  if (at < 0) return [];
  return [
    {
      do: 'patch',
      type: NAMESPACES,
      name: { name: metadata.name },
      uid: metadata.uid,
      subresource: 'finalize',
      patch: { type: 'json', body: removeListItem('/spec/finalizers', at, FINALIZER) },
      why: 'nothing is left in the namespace',
    },
  ];
}

export const namespaceController: EngineController = {
  account: 'namespace-controller',
  start(parts) {
    const { client, clock, registry } = parts;
    const informer = parts.informer(NAMESPACES);
    const rounds = new DeletionRounds(({ type }) => groupResource(type));
    const controller = defineController<NamespaceWorld>({
      name: 'namespace',
      type: NAMESPACES,
      sources: [source(informer)],
      rechecks: [CONTENT_RECHECK],
      async observe(key, { signal }) {
        const namespace = informer.get(key);
        if (namespace?.metadata.deletionTimestamp === undefined) {
          rounds.forget(key);
          return undefined;
        }
        const { uid } = namespace.metadata;
        const { after } = rounds.of(key, uid);
        const found = await survey(client, { namespace: key, kinds: namespacedKinds(registry), after, signal });
        const count = [...found.seen.resources.values()].reduce((sum, one) => sum + one, 0);
        const { quiet } = rounds.looked(key, uid, { count, complete: found.complete, last: placeOf(found.content) });
        return { namespace, ...found, quiet, now: timestamp(clock.now()) };
      },
      decide: decideNamespace,
      conclude: (world, failures) =>
        concludeNamespace(world, failures, rounds.learn(world.namespace.metadata.name, failures)),
      subject: ({ namespace }) => namespace,
    });
    // In a namespace that goes away nothing can be told.
    return startController(controller, { ...parts, events: noEvents });
  },
};

/** Every kind that can be in a namespace, once each. */
function namespacedKinds(registry: Registry): readonly ResourceType[] {
  return registry.collections().filter(({ namespaced, verbs }) => namespaced && verbs.includes('list'));
}

function placeOf(content: readonly Content[]): Place | undefined {
  const last = content.at(-1);
  return last && { kind: groupResource(last.type), key: objectKey(last.object) };
}

interface SurveyRange {
  readonly namespace: string;
  readonly kinds: readonly ResourceType[];
  readonly after: Place | undefined;
  readonly signal: AbortSignal;
}

async function survey(
  reader: Reader,
  { namespace, kinds, after, signal }: SurveyRange,
): Promise<Pick<NamespaceWorld, 'content' | 'seen' | 'complete'>> {
  const content: Content[] = [];
  const resources = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const seen = { resources, finalizers };
  // A kind that is not served any more was the last one: then everything is in turn again.
  const start = kinds.findIndex((type) => groupResource(type) === after?.kind);
  for (const [i, type] of kinds.entries()) {
    const from = i < start ? PAST_ALL : i === start ? after?.key : undefined;
    const found = await leftovers(reader, type, {
      namespace,
      atMost: MAX_CHANGES - content.length,
      after: from,
      signal,
    });
    content.push(...found.toDelete.map((object) => ({ type, object })));
    if (found.count > 0) resources.set(nameOf(type), found.count);
    for (const [name, count] of found.finalizers) finalizers.set(name, (finalizers.get(name) ?? 0) + count);
    if (!found.complete) return { content, seen, complete: false };
  }
  return { content, seen, complete: true };
}

/** Comes after every key. */
const PAST_ALL = '\uffff';
