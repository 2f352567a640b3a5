/**
 * Computes the status of one PodDisruptionBudget: how many pods may be evicted. Pure. An eviction
 * (subresources/pod-eviction.ts) decrements disruptionsAllowed and records the pod in disruptedPods. The pod then does not
 * count as healthy until it is deleted or two minutes have passed.
 */
import type { PodDisruptionBudget, BudgetStatus } from '#engine/controllers/disruption/kinds.ts';
import { countExpectedPods, type Scales } from '#engine/controllers/disruption/expected-pods.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { isTrue, setCondition } from '#kube/conditions.ts';
import { formatLabelSelector, labelRequirementsOf } from '#kube/selectors/label-selector.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Plan } from '#runtime/plan.ts';

export interface BudgetWorld {
  readonly budget: Stored<PodDisruptionBudget>;
  /** The pods that the selector matches. */
  readonly pods: readonly Stored<EnginePod>[];
  readonly scales: Scales;
  readonly nowMs: number;
}

/** The time within which a pod is expected to be deleted after its eviction was allowed. */
const DELETION_TIMEOUT_MS = 2 * 60_000;

const CONDITION = 'DisruptionAllowed';

export function decideBudget(world: BudgetWorld): Plan {
  const { budget, pods, scales, nowMs } = world;
  const { metadata, status = {} } = budget;
  const events: EventNote[] = [];
  if (pods.length === 0) events.push(eventNote('Normal', 'NoPods', 'No matching pods found'));
  const expected = countExpectedPods(budget, pods, scales);
  if ('failed' in expected) {
    const message = `Failed to calculate the number of expected pods: ${expected.failed}`;
    events.push(eventNote('Warning', 'CalculateExpectedPodCountFailed', message));
    return { status: buildFailedStatus(status, expected.failed, nowMs), changes: [], events };
  }
  const { expectedPods, desiredHealthy, unmanaged } = expected;
  if (unmanaged.length > 0) events.push(unmanagedPodsEvent(budget));
  const { disruptedPods, recheckMs } = remainingDisruptions(world);
  const currentHealthy = pods.filter((pod) => isHealthy(pod, disruptedPods)).length;
  const spare = currentHealthy - desiredHealthy;
  const disruptionsAllowed = expectedPods <= 0 || spare <= 0 ? 0 : spare;
  const allowed = disruptionsAllowed > 0;
  const observedGeneration = metadata.generation;
  const condition = {
    type: CONDITION,
    status: allowed ? ('True' as const) : ('False' as const),
    reason: allowed ? 'SufficientPods' : 'InsufficientPods',
    message: '',
    observedGeneration,
  };
  const next: BudgetStatus = {
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    currentHealthy,
    desiredHealthy,
    expectedPods,
    disruptionsAllowed,
    ...(disruptedPods.size === 0 ? {} : { disruptedPods: Object.fromEntries(disruptedPods) }),
    conditions: [...setCondition(status.conditions, condition, timestamp(nowMs))],
  };
  return { status: { ...next }, changes: [], events, requeueAfterMs: recheckMs };
}

/** Returns a status that allows no eviction until the failure is resolved. */
function buildFailedStatus(status: BudgetStatus, message: string, nowMs: number): Record<string, unknown> {
  const condition = {
    type: CONDITION,
    status: 'False' as const,
    reason: 'SyncFailed',
    message,
    observedGeneration: status.observedGeneration,
  };
  const conditions = [...setCondition(status.conditions, condition, timestamp(nowMs))];
  // The schema requires these counts.
  const counts = { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  return { ...counts, ...status, disruptionsAllowed: 0, conditions };
}

/**
 * Returns the disrupted pods that still have to be recorded. Pods that are deleted or under deletion are removed; pods that
 * were not deleted in time count as healthy again.
 */
function remainingDisruptions({ budget, pods, nowMs }: BudgetWorld) {
  const recorded = new Map(Object.entries(budget.status?.disruptedPods ?? {}));
  const disruptedPods = new Map<string, string>();
  let recheckMs: number | undefined;
  for (const { metadata } of pods) {
    const since = recorded.get(metadata.name);
    if (since === undefined || metadata.deletionTimestamp !== undefined) continue;
    const leftMs = Date.parse(since) + DELETION_TIMEOUT_MS - nowMs;
    if (leftMs <= 0) continue;
    disruptedPods.set(metadata.name, since);
    recheckMs = Math.min(recheckMs ?? leftMs, leftMs);
  }
  return { disruptedPods, recheckMs };
}

function isHealthy({ metadata, status }: Stored<EnginePod>, disruptedPods: ReadonlyMap<string, string>): boolean {
  if (metadata.deletionTimestamp !== undefined || disruptedPods.has(metadata.name)) return false;
  return isTrue(status?.conditions, 'Ready');
}

function unmanagedPodsEvent({ spec }: PodDisruptionBudget): EventNote {
  const selector = formatLabelSelector(labelRequirementsOf(spec?.selector ?? {}));
  return eventNote(
    'Warning',
    'UnmanagedPods',
    `Pods selected by this PodDisruptionBudget (selector: ${selector}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`,
  );
}

function eventNote(type: EventNote['type'], reason: string, message: string): EventNote {
  return { type, reason, message };
}
