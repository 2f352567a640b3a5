/** Indexes pods by namespace and label, so that a selector need not be compared with all pods. */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { type LabelRequirement, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { Stored } from '#kube/meta.ts';

export class LabelledPods {
  readonly #byNamespace = new Map<string, Set<string>>();
  readonly #byLabel = new Map<string, Set<string>>();
  readonly #get: (key: string) => Stored<EnginePod> | undefined;

  constructor(get: (key: string) => Stored<EnginePod> | undefined) {
    this.#get = get;
  }

  update(
    key: string,
    { old, new: next }: { old: Stored<EnginePod> | undefined; new: Stored<EnginePod> | undefined },
  ): void {
    if (old !== undefined) this.#forEachEntry(old, (index, entry) => removeKey(index, entry, key));
    if (next !== undefined) this.#forEachEntry(next, (index, entry) => addKey(index, entry, key));
  }

  /** Returns the matching pods in the order of their names. */
  select(namespace: string, requirements: readonly LabelRequirement[]): Stored<EnginePod>[] {
    let smallest = this.#byNamespace.get(namespace);
    for (const { key, operator, values } of requirements) {
      if ((operator !== '=' && operator !== 'in') || values.length !== 1) continue;
      const found = this.#byLabel.get(labelKey(namespace, key, values[0]!));
      if (found === undefined) return [];
      if (found.size < (smallest?.size ?? Infinity)) smallest = found;
    }
    const pods = [...(smallest ?? [])].flatMap((key) => this.#get(key) ?? []);
    return pods
      .filter(({ metadata }) => matchesLabels(requirements, metadata.labels))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  #forEachEntry(
    { metadata }: Stored<EnginePod>,
    visit: (index: Map<string, Set<string>>, entry: string) => void,
  ): void {
    const { namespace = '', labels = {} } = metadata;
    visit(this.#byNamespace, namespace);
    for (const [key, value] of Object.entries(labels)) visit(this.#byLabel, labelKey(namespace, key, value));
  }
}

function addKey(index: Map<string, Set<string>>, entry: string, key: string): void {
  index.set(entry, (index.get(entry) ?? new Set()).add(key));
}

function removeKey(index: Map<string, Set<string>>, entry: string, key: string): void {
  const keys = index.get(entry);
  if (keys?.delete(key) && keys.size === 0) index.delete(entry);
}

/** Unambiguous, because none of the three contains a space. */
function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace} ${key} ${value}`;
}
