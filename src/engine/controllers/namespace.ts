/**
 * Namespaces under deletion: everything in them is deleted, then the namespace itself is let go. Nothing new can come
 * meanwhile (admission/namespace-lifecycle.ts). What is in the way stands in the conditions of the status.
 */
import type { Reader } from '#client/client.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import { leftovers } from '#engine/controllers/leftovers.ts';
import { namespaceConditions, type Remaining } from '#engine/controllers/namespace-conditions.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { Registry } from '#engine/registry/registry.ts';
import { timestamp } from '#lib/clock.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { MAX_CHANGES, NOTHING, type Change, type Plan } from '#runtime/plan.ts';

const FINALIZER = 'kubernetes';

export interface Content {
  readonly type: ResourceType;
  readonly object: Stored;
}

export interface NamespaceWorld {
  readonly namespace: Stored<Namespace>;
  /** What is in it and not yet under deletion, as much as one plan can delete. */
  readonly content: readonly Content[];
  /** Nothing is in it at all. */
  readonly empty: boolean;
  /** Absent while there is too much in it to look at everything. */
  readonly remaining: Remaining | undefined;
  readonly now: string;
}

/** Objects that wait for their finalizers are looked at again after this time. */
const LOOK_AGAIN_MS = 500;

/** Pure. */
export function decideNamespace(world: NamespaceWorld): Plan {
  const { namespace, content, empty } = world;
  if (namespace.metadata.deletionTimestamp === undefined) return NOTHING;
  const status = terminatingStatus(world);
  if (!empty) return { status, changes: content.map(deletion), requeueAfterMs: LOOK_AGAIN_MS };
  return { status, changes: release(namespace) };
}

function terminatingStatus({ namespace, remaining, now }: NamespaceWorld): Plan['status'] {
  if (remaining === undefined) return undefined;
  return { ...namespace.status, conditions: namespaceConditions(namespace.status?.conditions, remaining, now) };
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
    const controller = defineController<NamespaceWorld>({
      name: 'namespace',
      type: NAMESPACES,
      sources: [source(informer)],
      async observe(key, { signal }) {
        const namespace = informer.get(key);
        if (namespace?.metadata.deletionTimestamp === undefined) return undefined;
        const found = await survey(client, key, namespacedKinds(registry), signal);
        return { namespace, ...found, now: timestamp(clock.now()) };
      },
      decide: decideNamespace,
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

async function survey(
  reader: Reader,
  namespace: string,
  kinds: readonly ResourceType[],
  signal: AbortSignal,
): Promise<Pick<NamespaceWorld, 'content' | 'empty' | 'remaining'>> {
  const content: Content[] = [];
  const resources = new Map<string, number>();
  const finalizers = new Map<string, number>();
  let empty = true;
  let complete = true;
  for (const type of kinds) {
    const found = await leftovers(reader, type, { namespace, atMost: MAX_CHANGES - content.length, signal });
    content.push(...found.toDelete.map((object) => ({ type, object })));
    if (found.any) empty = false;
    if (!found.complete) complete = false;
    // The dot stands there without a group, too.
    if (found.held > 0) resources.set(`${type.plural}.${type.group}`, found.held);
    for (const [name, count] of found.finalizers) finalizers.set(name, (finalizers.get(name) ?? 0) + count);
  }
  return { content, empty, remaining: complete ? { resources, finalizers } : undefined };
}
