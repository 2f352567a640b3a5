/** Scores by the usage of a node, preferred node affinity, and PreferNoSchedule taints. */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import { compileTerm } from '#engine/controllers/placement/node-selector.ts';
import { CPU, MEMORY } from '#engine/controllers/scheduler/requests.ts';
import {
  MAX_SCORE,
  normalizeScores,
  invertScores,
  type NodeScore,
} from '#engine/controllers/scheduler/scores/node-score.ts';
import { tolerates } from '#engine/controllers/placement/taints.ts';

/** The average share of CPU and memory that would remain free. */
export const leastUsedScore: NodeScore = ({ scored: wanted }, _, fitting) =>
  fitting.map(({ allocatable, scored }) => {
    const shares = [CPU, MEMORY].flatMap((name) => {
      const all = allocatable.get(name) ?? 0;
      if (all <= 0) return [];
      const left = all - (scored.get(name) ?? 0) - (wanted.get(name) ?? 0);
      return [left <= 0 ? 0 : Math.floor((left * MAX_SCORE) / all)];
    });
    return shares.length === 0 ? 0 : Math.floor(shares.reduce((sum, share) => sum + share, 0) / shares.length);
  });

export const nodeAffinityScore: NodeScore = ({ pod }, _, fitting) => {
  const preferred = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  if (preferred.length === 0) return undefined;
  const terms = preferred.map(({ weight, preference }) => ({ weight, matches: compileTerm(preference) }));
  const preferenceOf = (node: EngineNode) =>
    terms.reduce((sum, { weight, matches }) => sum + (matches(node) ? weight : 0), 0);
  return normalizeScores(fitting.map(({ node }) => preferenceOf(node)));
};

export const taintScore: NodeScore = ({ tolerations }, _, fitting) => {
  const countAvoidedTaints = ({ spec }: EngineNode) =>
    (spec?.taints ?? []).filter(
      (taint) => taint.effect === 'PreferNoSchedule' && !tolerations.some((one) => tolerates(one, taint)),
    ).length;
  return invertScores(fitting.map(({ node }) => countAvoidedTaints(node)));
};
