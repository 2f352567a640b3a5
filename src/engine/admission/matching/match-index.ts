/**
 * Who may want to see a request, by resource, subresource and operation. What can be told from these is worked out
 * once and kept until the items or the served kinds change; only then names and labels are looked at.
 */
import type { AdmissionAttributes, Operation } from '#engine/admission/admission.ts';
import type { CompiledMatch, Select } from '#engine/admission/matching/match-resources.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';

export interface Indexed<T> {
  readonly value: T;
  readonly match: CompiledMatch;
}

export interface Candidate<T> {
  readonly value: T;
  readonly select: Select;
}

type ByOperation<T> = Partial<Record<Operation, readonly Candidate<T>[]>>;

const NOBODY: readonly never[] = [];

export class MatchIndex<T> {
  readonly #registry: Registry;
  readonly #exempt: ReadonlySet<string>;
  #items: readonly Indexed<T>[] = [];
  #generation = -1;
  readonly #known = new Map<Resource, Map<string, ByOperation<T>>>();

  /** Nobody is asked about the exempt collections: whoever breaks admission must be able to mend it. */
  constructor(registry: Registry, { exempt }: { exempt: ReadonlySet<string> }) {
    this.#registry = registry;
    this.#exempt = exempt;
  }

  replace(items: readonly Indexed<T>[]): void {
    this.#items = items;
    this.#known.clear();
  }

  /** In the order of the items. */
  candidates({ resource, subresource, operation }: AdmissionAttributes): readonly Candidate<T>[] {
    if (this.#items.length === 0) return NOBODY;
    if (this.#generation !== this.#registry.generation) {
      this.#generation = this.#registry.generation;
      this.#known.clear();
    }
    const known = this.#operations(resource, subresource);
    return (known[operation] ??= this.#narrow(resource, subresource, operation));
  }

  /** Bounded by what is served: a request for any other subresource does not come this far. */
  #operations(resource: Resource, subresource: string): ByOperation<T> {
    let bySubresource = this.#known.get(resource);
    if (bySubresource === undefined) this.#known.set(resource, (bySubresource = new Map()));
    let byOperation = bySubresource.get(subresource);
    if (byOperation === undefined) bySubresource.set(subresource, (byOperation = {}));
    return byOperation;
  }

  #narrow(resource: Resource, subresource: string, operation: Operation): readonly Candidate<T>[] {
    if (this.#exempt.has(resource.collection)) return NOBODY;
    const candidates = this.#items.flatMap(({ value, match }) => {
      const select = match.narrow(resource, subresource, operation);
      return select === undefined ? [] : [{ value, select }];
    });
    return candidates.length === 0 ? NOBODY : candidates;
  }
}
