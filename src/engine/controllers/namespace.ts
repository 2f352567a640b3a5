/**
 * Namespaces under deletion: everything in them is deleted, then the namespace itself is let go. Nothing new can come
 * meanwhile (admission/namespace-lifecycle.ts).
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { NAMESPACES, type Namespace } from '#engine/controllers/kinds.ts';
import { leftovers } from '#engine/controllers/leftovers.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { defineController, source } from '#runtime/controller.ts';
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
}

/** Objects that wait for their finalizers are looked at again after this time. */
const LOOK_AGAIN_MS = 500;

/** Pure. */
export function decideNamespace({ namespace, content, empty }: NamespaceWorld): Plan {
  if (namespace.metadata.deletionTimestamp === undefined) return NOTHING;
  if (!empty) return { changes: content.map(deletion), requeueAfterMs: LOOK_AGAIN_MS };
  return { changes: release(namespace) };
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

export interface NamespaceControllerParts {
  readonly reader: Reader;
  readonly informer: Informer<Namespace>;
  /** Every kind that can be in a namespace, once each. */
  namespacedKinds(): readonly ResourceType[];
}

export function namespaceController({ reader, informer, namespacedKinds }: NamespaceControllerParts) {
  return defineController<NamespaceWorld>({
    name: 'namespace',
    type: NAMESPACES,
    sources: [source(informer)],
    async observe(key, { signal }) {
      const namespace = informer.get(key);
      if (namespace?.metadata.deletionTimestamp === undefined) return undefined;
      const content: Content[] = [];
      let empty = true;
      for (const type of namespacedKinds()) {
        const atMost = MAX_CHANGES - content.length;
        const { toDelete, any } = await leftovers(reader, type, { namespace: key, atMost, signal });
        content.push(...toDelete.map((object) => ({ type, object })));
        if (any) empty = false;
      }
      return { namespace, content, empty };
    },
    decide: decideNamespace,
    subject: ({ namespace }) => namespace,
  });
}
