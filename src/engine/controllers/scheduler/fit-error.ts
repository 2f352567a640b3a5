/** Renders why a pod fits on no node, with Kubernetes' wording and format (FitError). Pure. */
import type { NodeRefusal } from '#engine/controllers/scheduler/filters/node-filter.ts';

interface FitFailure {
  /** The number of nodes. */
  readonly total: number;
  /** Set if the pod fits on no node, regardless of the nodes. */
  readonly noNodeReason?: string;
  /** One refusal for each node that was checked. */
  readonly refusals: readonly NodeRefusal[];
  readonly preemptionPolicy: string | undefined;
}

const NO_NODES = 'no nodes available to schedule pods';

export function fitErrorMessage(unfit: FitFailure): string {
  const { total, noNodeReason, refusals } = unfit;
  if (total === 0) return NO_NODES;
  const reasons = noNodeReason ?? renderReasonCounts(refusals.flatMap((refusal) => refusal.reasons));
  return `${renderUnavailable(total, reasons)} preemption: ${renderPreemption(unfit)}`;
}

/** This scheduler preempts no pods, so it reports that there are no victims. */
function renderPreemption({ total, noNodeReason, refusals, preemptionPolicy }: FitFailure): string {
  if (preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.';
  const reasons: string[] = Array.from({ length: total }, (_, i) =>
    noNodeReason === undefined && refusals[i]?.isResolvable === true
      ? 'No preemption victims found for incoming pod'
      : 'Preemption is not helpful for scheduling',
  );
  return renderUnavailable(total, renderReasonCounts(reasons));
}

function renderUnavailable(total: number, reasons: string): string {
  return `0/${total} nodes are available: ${reasons}.`;
}

/** Renders `1 Too many pods, 2 Insufficient cpu`, sorted as strings. */
function renderReasonCounts(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ');
}
