/** What a score is: how good each node is for the pod, from 0 to 100. Bigger is better. */
import type { ClusterView } from '#engine/controllers/scheduler/filters/filter.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';

export const BEST = 100;

/** One number for each of `fitting`, in their order; undefined where it makes no difference for this pod. */
export type Score = (facts: PodFacts, cluster: ClusterView, fitting: readonly NodeView[]) => number[] | undefined;

/** The largest becomes 100; nothing says so where all are zero. */
export function normalized(raw: readonly number[]): number[] | undefined {
  const most = Math.max(...raw);
  return most <= 0 ? undefined : raw.map((value) => Math.floor((BEST * value) / most));
}

/** The largest becomes 0, nothing 100. */
export function reversed(raw: readonly number[]): number[] | undefined {
  return normalized(raw)?.map((value) => BEST - value);
}
