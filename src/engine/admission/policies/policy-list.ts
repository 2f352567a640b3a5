/** The bound policies, in sync with the store: effective as soon as policy and binding are durable. */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { MatchIndex, type Candidate, type Indexed } from '#engine/admission/matching/match-index.ts';
import { matchPartsOf } from '#engine/admission/matching/match-parts.ts';
import {
  compileMatchResources,
  type CompiledMatch,
  type MatchParts,
} from '#engine/admission/matching/match-resources.ts';
import { runIndivisible, type Units } from '#cel/limits/slices.ts';
import { compileUnits } from '#cel/limits/source-limits.ts';
import { compilePolicy, failureText, sourcesOf, type CompiledPolicy } from '#engine/expressions/compile-policy.ts';
import {
  BINDING_COLLECTION,
  POLICY_COLLECTION,
  type BindingSpec,
  type Policy,
  type PolicyBinding,
  type PolicySpec,
} from '#engine/admission/policies/policy-spec.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import type { Log } from '#lib/log.ts';

export interface BoundPolicy {
  readonly name: string;
  readonly spec: PolicySpec;
  readonly program: PolicyProgram;
  /** Bindings by name, indexed by what they match. */
  readonly bindings: MatchIndex<PolicyBindingRule>;
}

export interface PolicyBindingRule {
  readonly name: string;
  readonly spec: BindingSpec;
}

interface PolicyCompilation {
  readonly policy: CompiledPolicy;
  /** The error of stored expressions that do not compile, for example because they bypassed validation. */
  readonly failure: string | undefined;
}

/**
 * A policy that is compiled by the first request that needs it, not in the turn of the event loop in which the policy
 * was written and already compiled once to validate it.
 */
class PolicyProgram {
  readonly #spec: PolicySpec;
  #compilation: PolicyCompilation | undefined;

  constructor(spec: PolicySpec) {
    this.#spec = spec;
  }

  *get(): Generator<Units, PolicyCompilation> {
    if (this.#compilation !== undefined) return this.#compilation;
    const units = compileUnits(sourcesOf(this.#spec));
    // Another request may have compiled it meanwhile.
    return yield* runIndivisible(units, () => (this.#compilation ??= compilePolicyOnce(this.#spec)));
  }
}

interface ParsedPolicy {
  readonly policy: Omit<BoundPolicy, 'bindings'>;
  readonly match: CompiledMatch;
}

interface PolicyListParts {
  readonly store: Store;
  readonly registry: Registry;
  readonly log: Log;
}

/** Policies do not apply to policies and bindings, so that broken admission can be repaired. */
const EXEMPT: ReadonlySet<string> = new Set([POLICY_COLLECTION, BINDING_COLLECTION]);

export class PolicyList {
  readonly #parts: PolicyListParts;
  readonly #match: MatchParts;
  readonly #index: MatchIndex<BoundPolicy>;
  readonly #policies = new WeakMap<Entry, ParsedPolicy | undefined>();
  readonly #bindings = new WeakMap<Entry, Indexed<PolicyBindingRule> | undefined>();
  readonly #stops: readonly (() => void)[];

  /** Up to date when the constructor returns. */
  constructor(parts: PolicyListParts) {
    const { store, registry } = parts;
    this.#parts = parts;
    this.#match = matchPartsOf(store, registry);
    this.#index = new MatchIndex(registry, { exempt: EXEMPT });
    this.#stops = [POLICY_COLLECTION, BINDING_COLLECTION].map((collection) =>
      store.watch({ collection, since: store.revision }, () => this.#refresh()),
    );
    this.#refresh();
  }

  /** Returns the matching policies by name. */
  candidates(attributes: AdmissionAttributes): readonly Candidate<BoundPolicy>[] {
    return this.#index.candidates(attributes);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
    this.#index.replace([]);
  }

  #refresh(): void {
    const { store } = this.#parts;
    const bindings = Map.groupBy(
      store.list(BINDING_COLLECTION).entries.flatMap((entry) => this.#bindingOf(entry) ?? []),
      ({ value }) => value.spec.policyName,
    );
    this.#index.replace(
      store.list(POLICY_COLLECTION).entries.flatMap((entry) => {
        const read = this.#policyOf(entry);
        const bound = read && bindings.get(read.policy.name);
        return bound === undefined
          ? []
          : [{ value: { ...read!.policy, bindings: this.#indexBindings(bound) }, match: read!.match }];
      }),
    );
  }

  #indexBindings(bindings: readonly Indexed<PolicyBindingRule>[]): MatchIndex<PolicyBindingRule> {
    const index = new MatchIndex<PolicyBindingRule>(this.#parts.registry, { exempt: EXEMPT });
    index.replace(bindings);
    return index;
  }

  #policyOf(entry: Entry): ParsedPolicy | undefined {
    return cached(this.#policies, entry, () => this.#readSafely(entry, readPolicy));
  }

  #bindingOf(entry: Entry): Indexed<PolicyBindingRule> | undefined {
    return cached(this.#bindings, entry, () => this.#readSafely(entry, readBinding));
  }

  /** An invalid object takes only itself out of service. */
  #readSafely<T>(entry: Entry, read: (entry: Entry, match: MatchParts) => T): T | undefined {
    try {
      return read(entry, this.#match);
    } catch (error) {
      this.#parts.log.error(
        { err: error, object: `${entry.collection} ${entry.id}` },
        'Cannot read an admission policy',
      );
      return undefined;
    }
  }
}

function cached<T>(known: WeakMap<Entry, T>, entry: Entry, make: () => T): T {
  if (!known.has(entry)) known.set(entry, make());
  return known.get(entry) as T;
}

function compilePolicyOnce(spec: PolicySpec): PolicyCompilation {
  const failures: string[] = [];
  const policy = compilePolicy(spec, (_, __, failure) => failures.push(failureText(failure)));
  return { policy, failure: failures.length === 0 ? undefined : failures.join('; ') };
}

function readPolicy(entry: Entry, match: MatchParts): ParsedPolicy {
  const { metadata, spec = {} } = decodeStored(entry.bytes) as Policy;
  return {
    policy: { name: metadata.name ?? '', spec, program: new PolicyProgram(spec) },
    match: compileMatchResources(spec.matchConstraints ?? {}, match),
  };
}

function readBinding(entry: Entry, match: MatchParts): Indexed<PolicyBindingRule> {
  const { metadata, spec } = decodeStored(entry.bytes) as PolicyBinding;
  // Without matchResources, a binding applies wherever the policy matches.
  return {
    value: { name: metadata.name ?? '', spec },
    match: compileMatchResources(spec.matchResources ?? {}, match),
  };
}
