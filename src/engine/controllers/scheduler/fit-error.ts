/** Why a pod fits on no node, in Kubernetes' words and format (FitError). Pure. */
import type { Refusal } from '#engine/controllers/scheduler/filters/filter.ts';

export interface Unfit {
  /** How many nodes there are. */
  readonly total: number;
  /** Set where the pod fits nowhere, whatever the nodes are like. */
  readonly nowhere?: string;
  /** One for each node that was looked at. */
  readonly refusals: readonly Refusal[];
  readonly preemptionPolicy: string | undefined;
}

export const NO_NODES = 'no nodes available to schedule pods';

export function fitErrorMessage(unfit: Unfit): string {
  const { total, nowhere, refusals } = unfit;
  if (total === 0) return NO_NODES;
  const reasons = nowhere ?? counted(refusals.flatMap((refusal) => refusal.reasons));
  return `${available(total, reasons)} preemption: ${preemption(unfit)}`;
}

/** Nobody is preempted here, so that there are no victims wherever there could be some. */
function preemption({ total, nowhere, refusals, preemptionPolicy }: Unfit): string {
  if (preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.';
  const reasons: string[] = Array.from({ length: total }, (_, i) =>
    nowhere === undefined && refusals[i]?.resolvable === true
      ? 'No preemption victims found for incoming pod'
      : 'Preemption is not helpful for scheduling',
  );
  return available(total, counted(reasons));
}

function available(total: number, reasons: string): string {
  return `0/${total} nodes are available: ${reasons}.`;
}

/** `2 Insufficient cpu, 1 Too many pods`, sorted as texts. */
function counted(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ');
}
