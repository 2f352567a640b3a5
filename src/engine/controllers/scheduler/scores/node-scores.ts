/** How used a node is, and what the pod would like of it: preferred affinity, taints that it would rather avoid. */
import type { Node } from '#engine/controllers/kinds.ts';
import { compileTerm } from '#engine/controllers/scheduler/node-selector.ts';
import { CPU, MEMORY } from '#engine/controllers/scheduler/requests.ts';
import { BEST, normalized, reversed, type Score } from '#engine/controllers/scheduler/scores/score.ts';
import { tolerates } from '#engine/controllers/scheduler/tolerations.ts';

/** The share of CPU and memory that would be left, averaged. */
export const leastUsedScore: Score = ({ scored: wanted }, _, fitting) =>
  fitting.map(({ allocatable, scored }) => {
    const shares = [CPU, MEMORY].flatMap((name) => {
      const all = allocatable.get(name) ?? 0;
      if (all <= 0) return [];
      const left = all - (scored.get(name) ?? 0) - (wanted.get(name) ?? 0);
      return [left <= 0 ? 0 : Math.floor((left * BEST) / all)];
    });
    return shares.length === 0 ? 0 : Math.floor(shares.reduce((sum, share) => sum + share, 0) / shares.length);
  });

export const nodeAffinityScore: Score = ({ pod }, _, fitting) => {
  const preferred = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  if (preferred.length === 0) return undefined;
  const terms = preferred.map(({ weight, preference }) => ({ weight, matches: compileTerm(preference) }));
  const liked = (node: Node) => terms.reduce((sum, { weight, matches }) => sum + (matches(node) ? weight : 0), 0);
  return normalized(fitting.map(({ node }) => liked(node)));
};

export const taintScore: Score = ({ tolerations }, _, fitting) => {
  const avoided = ({ spec }: Node) =>
    (spec?.taints ?? []).filter(
      (taint) => taint.effect === 'PreferNoSchedule' && !tolerations.some((one) => tolerates(one, taint)),
    ).length;
  return reversed(fitting.map(({ node }) => avoided(node)));
};
