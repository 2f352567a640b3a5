/** Lookups for matching: namespace labels in the store, versions of a collection in the registry. */
import type { ObjectLabels, MatchParts } from '#engine/admission/matching/match-resources.ts';
import { NAMESPACE_COLLECTION } from '#engine/admission/namespace-lifecycle.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Entry, Store } from '#engine/store/store.ts';

const NO_LABELS: ObjectLabels = {};
/** Parsed once per version of a namespace. */
const known = new WeakMap<Entry, ObjectLabels>();

export function matchPartsOf(store: Store, registry: Registry): MatchParts {
  return {
    namespaceLabels(name) {
      const entry = store.latest(NAMESPACE_COLLECTION, name);
      return entry && labelsOf(entry);
    },
    equivalents({ collection, group, version }) {
      return registry.resources.filter(
        (other) => other.collection === collection && (other.group !== group || other.version !== version),
      );
    },
  };
}

function labelsOf(entry: Entry): ObjectLabels {
  let labels = known.get(entry);
  if (labels === undefined) known.set(entry, (labels = decodeStored(entry.bytes).metadata.labels ?? NO_LABELS));
  return labels;
}
