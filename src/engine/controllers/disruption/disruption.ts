/** Writes the status of PodDisruptionBudgets, which decides whether an eviction is allowed (decide-budget.ts). */
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
import { type LabelRequirement, labelRequirementsOf, matchesLabels } from '#kube/selectors/label-selector.ts';
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

/** The scale of owners is read for budgets in percent or with maxUnavailable. */
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

/** Returns the selector of a budget. Without one it selects nothing; an empty one selects the whole namespace. */
function selectorOf({ spec }: PodDisruptionBudget): readonly LabelRequirement[] | undefined {
  return spec?.selector && labelRequirementsOf(spec.selector);
}

/** The compiled selectors of all budgets by namespace. They are evaluated for every change of a pod. */
class BudgetSelectors {
  readonly #byNamespace = new Map<string, Map<string, readonly LabelRequirement[]>>();

  update(key: string, budget: Stored<PodDisruptionBudget>, isPresent: boolean): void {
    const { namespace = '' } = budget.metadata;
    const selectors = this.#byNamespace.get(namespace) ?? new Map<string, readonly LabelRequirement[]>();
    const selector = isPresent ? selectorOf(budget) : undefined;
    if (selector === undefined) selectors.delete(key);
    else selectors.set(key, selector);
    if (selectors.size === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, selectors);
  }

  /** Returns the keys of the budgets that select the pod. */
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
