/** Keeps the status of PodDisruptionBudgets, by which evictions are allowed or refused (decide-budget.ts). */
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { type BudgetWorld, decideBudget } from '#engine/controllers/disruption/decide-budget.ts';
import { needsScale } from '#engine/controllers/disruption/expected-pods.ts';
import { type PodDisruptionBudget, POD_DISRUPTION_BUDGETS } from '#engine/controllers/disruption/kinds.ts';
import { LabelledPods } from '#engine/controllers/disruption/labelled-pods.ts';
import { readOwnerScales } from '#engine/controllers/disruption/owner-scales.ts';
import { staleDisruptionController } from '#engine/controllers/disruption/stale-disruption.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { type LabelRequirement, labelRequirementsOf, matchesLabels } from '#kube/label-selector.ts';
import type { Stored } from '#kube/meta.ts';
import { ANY_KIND, type Recheck } from '#runtime/decision-reads.ts';
import { type ControllerDefinition, type Source, startController } from '#runtime/controller.ts';

export const disruptionController: EngineController = {
  account: 'disruption-controller',
  start(parts) {
    const stale = staleDisruptionController(parts.informer(ENGINE_PODS), parts.clock);
    return [startController(budgetDefinition(parts), parts), startController(stale, parts)];
  },
};

/** As many pods as an owner wants are asked for where a budget counts in percent, or in pods that may be missing. */
const SCALE_RECHECK: Recheck = {
  type: ANY_KIND,
  everyMs: 30_000,
  because: 'the owner of a pod may be of any kind that has a scale',
};

function budgetDefinition({
  informer,
  client,
  registry,
  clock,
}: EngineControllerParts): ControllerDefinition<BudgetWorld> {
  const budgets = informer(POD_DISRUPTION_BUDGETS);
  const pods = informer(ENGINE_PODS);
  const labelled = new LabelledPods((key) => pods.get(key));
  const selectors = new BudgetSelectors();
  return {
    name: 'disruption',
    type: POD_DISRUPTION_BUDGETS,
    sources: [budgetSource(budgets, selectors), podSource(pods, labelled, selectors)],
    rechecks: [SCALE_RECHECK],
    async observe(key, { signal }) {
      const budget = budgets.get(key);
      if (budget === undefined) return undefined;
      const { namespace = '' } = budget.metadata;
      const selector = selectorOf(budget);
      const selected = selector === undefined ? [] : labelled.select(namespace, selector);
      const scales = needsScale(budget)
        ? await readOwnerScales(selected, { reader: client, registry }, { signal })
        : new Map();
      return { budget, pods: selected, scales, nowMs: clock.now() };
    },
    decide: decideBudget,
    subject: ({ budget }) => budget,
  };
}

/** Without a selector it guards nothing, with an empty one the whole namespace. */
function selectorOf({ spec }: PodDisruptionBudget): readonly LabelRequirement[] | undefined {
  return spec?.selector && labelRequirementsOf(spec.selector);
}

/** The selectors of all budgets, compiled once, by namespace: every change of a pod asks for them. */
class BudgetSelectors {
  readonly #byNamespace = new Map<string, Map<string, readonly LabelRequirement[]>>();

  update(key: string, budget: Stored<PodDisruptionBudget>, isPresent: boolean): void {
    const { namespace = '' } = budget.metadata;
    const held = this.#byNamespace.get(namespace) ?? new Map<string, readonly LabelRequirement[]>();
    const selector = isPresent ? selectorOf(budget) : undefined;
    if (selector === undefined) held.delete(key);
    else held.set(key, selector);
    if (held.size === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, held);
  }

  /** The keys of budgets that guard the pod. */
  budgetsFor({ metadata }: EnginePod): string[] {
    const keys: string[] = [];
    for (const [key, selector] of this.#byNamespace.get(metadata.namespace ?? '') ?? []) {
      if (matchesLabels(selector, metadata.labels)) keys.push(key);
    }
    return keys;
  }
}

function budgetSource(budgets: Informer<PodDisruptionBudget>, selectors: BudgetSelectors): Source {
  return {
    cache: budgets,
    subscribe: (add) =>
      budgets.onChange((key, { old, new: next }) => {
        selectors.update(key, (next ?? old)!, next !== undefined);
        add(key);
      }),
  };
}

function podSource(pods: Informer<EnginePod>, labelled: LabelledPods, selectors: BudgetSelectors): Source {
  return {
    cache: pods,
    subscribe: (add) =>
      pods.onChange((_, change) => {
        const { old, new: next } = change;
        labelled.update(objectKey((next ?? old)!), change);
        if (old !== undefined) for (const key of selectors.budgetsFor(old)) add(key);
        if (next !== undefined) for (const key of selectors.budgetsFor(next)) add(key);
      }),
  };
}
