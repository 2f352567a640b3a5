/**
 * Indexes webhooks and policies by resource, subresource and operation. This match is computed once and cached until
 * the items or the served kinds change; names and labels are checked for each request.
 */
import type { AdmissionAttributes, AdmissionOperation } from '#engine/admission/admission.ts';
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

type ByOperation<T> = Partial<Record<AdmissionOperation, readonly Candidate<T>[]>>;

const NONE: readonly never[] = [];

export class MatchIndex<T> {
  readonly #registry: Registry;
  readonly #exempt: ReadonlySet<string>;
  #items: readonly Indexed<T>[] = [];
  #generation = -1;
  readonly #cache = new Map<Resource, Map<string, ByOperation<T>>>();

  /** Exempt collections match nothing, so that broken admission can be repaired. */
  constructor(registry: Registry, { exempt }: { exempt: ReadonlySet<string> }) {
    this.#registry = registry;
    this.#exempt = exempt;
  }

  replace(items: readonly Indexed<T>[]): void {
    this.#items = items;
    this.#cache.clear();
  }

  /** Returns the candidates in the order of the items. */
  candidates({ resource, subresource, operation }: AdmissionAttributes): readonly Candidate<T>[] {
    if (this.#items.length === 0) return NONE;
    if (this.#generation !== this.#registry.generation) {
      this.#generation = this.#registry.generation;
      this.#cache.clear();
    }
    const known = this.#operations(resource, subresource);
    return (known[operation] ??= this.#narrow(resource, subresource, operation));
  }

  /** Bounded by the number of served subresources: requests for unknown ones are refused earlier. */
  #operations(resource: Resource, subresource: string): ByOperation<T> {
    let bySubresource = this.#cache.get(resource);
    if (bySubresource === undefined) this.#cache.set(resource, (bySubresource = new Map()));
    let byOperation = bySubresource.get(subresource);
    if (byOperation === undefined) bySubresource.set(subresource, (byOperation = {}));
    return byOperation;
  }

  #narrow(resource: Resource, subresource: string, operation: AdmissionOperation): readonly Candidate<T>[] {
    if (this.#exempt.has(resource.collection)) return NONE;
    const candidates = this.#items.flatMap(({ value, match }) => {
      const select = match.narrow(resource, subresource, operation);
      return select === undefined ? [] : [{ value, select }];
    });
    return candidates.length === 0 ? NONE : candidates;
  }
}
