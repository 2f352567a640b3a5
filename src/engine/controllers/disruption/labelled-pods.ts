/** Pods by namespace and label, so that a budget need not walk over all of them. */
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { type LabelRequirement, matchesLabels } from '#kube/label-selector.ts';
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
    if (old !== undefined) this.#each(old, (held, at) => removeKey(held, at, key));
    if (next !== undefined) this.#each(next, (held, at) => addKey(held, at, key));
  }

  /** In the order of their names. */
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

  #each({ metadata }: Stored<EnginePod>, act: (held: Map<string, Set<string>>, at: string) => void): void {
    const { namespace = '', labels = {} } = metadata;
    act(this.#byNamespace, namespace);
    for (const [key, value] of Object.entries(labels)) act(this.#byLabel, labelKey(namespace, key, value));
  }
}

function addKey(held: Map<string, Set<string>>, at: string, key: string): void {
  held.set(at, (held.get(at) ?? new Set()).add(key));
}

function removeKey(held: Map<string, Set<string>>, at: string, key: string): void {
  const keys = held.get(at);
  if (keys?.delete(key) && keys.size === 0) held.delete(at);
}

/** None of the three holds a space. */
function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace} ${key} ${value}`;
}
