/**
 * Removes fields that a schema does not name, in place, and reports them. As in Kubernetes:
 * x-kubernetes-preserve-unknown-fields keeps unknown fields but prunes inside known ones; an embedded resource keeps
 * its apiVersion, kind and metadata; a value of the wrong type loses its content, and validation then reports it.
 */
import { isLeaf, isMap, OBJECT_FIELDS, propertiesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import { Trail } from '#engine/registry/structural/trail.ts';
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

export type OnUnknown = (path: string) => void;

class PruneWalk extends Trail {
  readonly #onUnknown: OnUnknown | undefined;

  constructor(onUnknown: OnUnknown | undefined) {
    super();
    this.#onUnknown = onUnknown;
  }

  unknown(key: string): void {
    if (this.#onUnknown === undefined) return;
    this.enter(key);
    this.#onUnknown(this.path());
    this.leave();
  }
}

/** Receives objects and arrays only: scalars have nothing to prune. */
type Pruner = (value: object, walk: PruneWalk) => void;

export function compilePrune(schema: Schema, root: boolean): (object: object, onUnknown?: OnUnknown) => void {
  const prune = pruner(schema, { preserve: false, embedded: root });
  return (object, onUnknown) => prune(object, new PruneWalk(onUnknown));
}

interface Inherited {
  /** True if the enclosing list preserves unknown fields. */
  readonly preserve: boolean;
  readonly embedded: boolean;
}

function pruner(schema: Schema, inherited: Inherited): Pruner {
  const preserve = inherited.preserve || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (isLeaf(schema) && !preserve && !inherited.embedded && schema['x-kubernetes-embedded-resource'] !== true) {
    return empty;
  }
  const pruneItems = itemPruner(schema, preserve);
  const pruneFields = fieldPruner(schema, { ...inherited, preserve });
  return (value, walk) => {
    if (Array.isArray(value)) pruneItems?.(value, walk);
    else pruneFields(value as Record<string, unknown>, walk);
  };
}

function itemPruner({ items }: Schema, preserve: boolean): ((list: unknown[], walk: PruneWalk) => void) | undefined {
  if (items === undefined && preserve) return undefined;
  const prune = items === undefined ? empty : pruner(items, { preserve, embedded: false });
  return (list, walk) => {
    for (let i = 0; i < list.length; i++) {
      const item = list[i];
      if (typeof item !== 'object' || item === null) continue;
      walk.enter(i);
      prune(item, walk);
      walk.leave();
    }
  };
}

function fieldPruner(schema: Schema, { preserve, embedded }: Inherited) {
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const keepsObjectFields = embedded || isEmbedded;
  const known = propertiesOf(schema, (property) => pruner(property, { preserve: false, embedded: false }));
  const others = otherPruner(schema);
  return (object: Record<string, unknown>, walk: PruneWalk): void => {
    for (const key in object) {
      if (keepsObjectFields && OBJECT_FIELDS.has(key)) {
        if (isEmbedded && key === 'metadata') pruneMetadata(object[key], walk);
        continue;
      }
      const prune = known.get(key) ?? others;
      if (prune === undefined) {
        if (preserve) continue;
        walk.unknown(key);
        delete object[key];
        continue;
      }
      const value = object[key];
      if (typeof value !== 'object' || value === null) continue;
      walk.enter(key);
      prune(value, walk);
      walk.leave();
    }
  };
}

const METADATA_FIELDS: ReadonlySet<string> = new Set(Object.keys(metadataSchema.properties ?? {}));

/** Prunes the metadata of an embedded object. The handlers prune that of the object itself. */
function pruneMetadata(metadata: unknown, walk: PruneWalk): void {
  if (!isRecord(metadata)) return;
  walk.enter('metadata');
  for (const key of Object.keys(metadata)) {
    if (METADATA_FIELDS.has(key)) continue;
    walk.unknown(key);
    delete metadata[key];
  }
  walk.leave();
}

/** Returns the pruner for the values of a map, or undefined if other fields are unknown. */
function otherPruner(schema: Schema): Pruner | undefined {
  if (!isMap(schema)) return undefined;
  const values = valueSchema(schema);
  return values === undefined ? empty : pruner(values, { preserve: false, embedded: false });
}

/** Prunes everything, because nothing is known inside. */
const empty: Pruner = (value, walk) => {
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      if (typeof item !== 'object' || item === null) continue;
      walk.enter(i);
      empty(item, walk);
      walk.leave();
    }
    return;
  }
  for (const key of Object.keys(value)) {
    walk.unknown(key);
    delete (value as Record<string, unknown>)[key];
  }
};
