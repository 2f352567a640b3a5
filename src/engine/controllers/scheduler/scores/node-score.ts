/** The type of scores: how well each node suits the pod, from 0 to 100. Higher is better. */
import type { ClusterView } from '#engine/controllers/scheduler/filters/node-filter.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';

export const MAX_SCORE = 100;

/** Returns one number for each node of `fitting`, in order, or undefined if the score does not apply to the pod. */
export type NodeScore = (facts: PodFacts, cluster: ClusterView, fitting: readonly NodeView[]) => number[] | undefined;

/** Scales the values so that the largest is 100. Returns undefined if all are zero. */
export function normalizeScores(raw: readonly number[]): number[] | undefined {
  const most = Math.max(...raw);
  return most <= 0 ? undefined : raw.map((value) => Math.floor((MAX_SCORE * value) / most));
}

/** Scales the values so that the largest becomes 0, and 0 becomes 100. Returns undefined if all are zero. */
export function invertScores(raw: readonly number[]): number[] | undefined {
  return normalizeScores(raw)?.map((value) => MAX_SCORE - value);
}
