/** Writes the status of PodDisruptionBudgets, which decides whether an eviction is allowed (decide-budget.ts). */
import { type BudgetWorld, decideBudget } from '#engine/controllers/disruption/decide-budget.ts';
import { needsScale } from '#engine/controllers/disruption/expected-pods.ts';
import { type PodDisruptionBudget, POD_DISRUPTION_BUDGETS } from '#engine/controllers/disruption/kinds.ts';
import { LabelledPods } from '#engine/controllers/labelled-pods.ts';
import { PodSelectors } from '#engine/controllers/pod-selectors.ts';
import { readOwnerScales } from '#engine/controllers/disruption/owner-scales.ts';
import { staleDisruptionController } from '#engine/controllers/disruption/stale-disruption.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { type LabelRequirement, labelRequirementsOf } from '#kube/selectors/label-selector.ts';
import { ANY_KIND, type Recheck } from '#runtime/decision-reads.ts';
import { type ControllerDefinition, startController } from '#runtime/controller.ts';

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
  const selectors = new PodSelectors(selectorOf);
  return {
    name: 'disruption',
    type: POD_DISRUPTION_BUDGETS,
    sources: [selectors.objectSource(budgets), selectors.podSource(pods, labelled)],
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
