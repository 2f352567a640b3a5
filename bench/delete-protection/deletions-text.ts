/** The deletion times in the table of the original design, and the cost of each solution. Pure. */
import { median, percentile } from '../statistics.ts';
import { SOLUTIONS, type Solution } from './guards.ts';
import type { Batch, Deletions, Run } from './measure-deletions.ts';

/** The highest acceptable ratio of the policy. */
const MAX_POLICY_RATIO = 1.03;

/** The cost of one solution for one batch, compared with the baseline of the same runs. */
export interface Cost {
  readonly solution: Solution;
  readonly batch: Batch;
  readonly seconds: number;
  /** The median of the ratios of all runs. */
  readonly ratio: number;
  /** The same for the median of the single deletes. */
  readonly middleRatio: number;
  /** The middle half of the ratios lies between these. */
  readonly middleHalf: readonly [number, number];
  /** Only for the policy, which has a bar. */
  readonly verdict?: 'ok' | 'missed';
}

export function computeCosts({ batches }: Pick<Deletions, 'batches'>): Cost[] {
  return SOLUTIONS.flatMap((solution) => batches.map(({ batch, runs }) => computeCost(solution, batch, runs)));
}

function computeCost(solution: Solution, batch: Batch, runs: readonly Run[]): Cost {
  const ratios = runs.map((run) => run[solution].ms / run.Baseline.ms);
  const ratio = median(ratios);
  const verdict = ratio <= MAX_POLICY_RATIO ? 'ok' : 'missed';
  return {
    solution,
    batch,
    seconds: median(runs.map((run) => run[solution].ms)) / 1000,
    ratio,
    middleRatio: median(runs.map((run) => run[solution].middleMs / run.Baseline.middleMs)),
    middleHalf: [percentile(ratios, 0.25), percentile(ratios, 0.75)],
    ...(solution === 'VAP' ? { verdict } : {}),
  };
}

export function deletionsText(deletions: Deletions): string {
  const costs = computeCosts(deletions);
  const times = deletions.batches.map(({ batch }) => batch.times).join(', ');
  return [
    'Simulated guests; deleted one after another, each until it is gone;',
    `medians of ${deletions.batches[0]?.runs.length ?? 0} runs, each with the mean of ${times} times`,
    '',
    ...table(
      deletions.batches.map(({ batch }) => batch),
      costs,
    ),
    '',
    ...costs.filter(({ solution }) => solution !== 'Baseline').map(costText),
    '',
    kubectlText(deletions.kubectl),
  ].join('\n');
}

function table(batches: readonly Batch[], costs: readonly Cost[]): string[] {
  const titles = ['Solution', ...batches.map((batch) => `Deletion time ${describeBatch(batch)}(s)`)];
  const rows = SOLUTIONS.map((solution) => {
    const times = costs.filter((cost) => cost.solution === solution).map(({ seconds }) => timeText(seconds));
    return [solution, ...times];
  });
  const widths = titles.map((title, at) =>
    Math.max(...[titles, ...rows].map((row) => row[at]?.length ?? title.length)),
  );
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at]!)).join(' | ')} |`;
  return [line(titles), `|${widths.map((width) => `:${'-'.repeat(width + 1)}`).join('|')}|`, ...rows.map(line)];
}

const describeBatch = ({ count, running }: Batch) => `${running ? 'running' : 'stopped'} ${count} VMs`;

/** Formats with enough digits for a comparison: the times of the original table were a hundred times as long. */
const timeText = (seconds: number) => seconds.toFixed(seconds < 10 ? 3 : 2);

function costText({ solution, batch, ratio, middleRatio, middleHalf, verdict }: Cost): string {
  const range = `half of the runs ${percent(middleHalf[0])} to ${percent(middleHalf[1])}`;
  const bar = verdict === undefined ? '' : `; at most ${percent(MAX_POLICY_RATIO)}: ${verdict}`;
  return `${solution}, ${describeBatch(batch)}: ${percent(ratio)} of the baseline (${range}), its middle delete ${percent(middleRatio)}${bar}`;
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

function kubectlText(kubectl: Deletions['kubectl']): string {
  if (typeof kubectl === 'string') return `kubectl delete vm --all: not measured, ${kubectl}`;
  const { count, seconds, version } = kubectl;
  return [
    `kubectl ${version} delete vm --all, ${count} stopped VMs, with the policy: ${seconds.toFixed(2)} s`,
    '(kubectl limits itself to 5 requests per second after a burst, which hides the server)',
  ].join('\n');
}
