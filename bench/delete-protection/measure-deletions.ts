/**
 * Measures the cost of delete protection for deletes: the original comparison of no protection, policy and webhook, on
 * a plane with simulated guests. The solutions alternate VM by VM, so that drift and garbage affect all alike.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findNewKubectl } from '#test/support/kubectl.ts';
import { engineCertificate } from '../engine-process.ts';
import { JobProcess } from '../jobs.ts';
import { median } from '../statistics.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import type { WebhookServerJob } from '../webhook-server.ts';
import { NAMESPACE_OF, installGuards, SOLUTIONS, UNPROTECTED_LABELS, type Solution } from './guards.ts';
import { solutionOrder } from './turns.ts';
import type { VmDeletesJob } from './vm-deletes.ts';

/** The VMs of each solution that are deleted together. */
export interface Batch {
  readonly count: number;
  readonly running: boolean;
  /** The number of repetitions in each run, because one pause of the server is a large part of a small batch. */
  readonly times: number;
}

export interface Deletion {
  /** The total time from the DELETE of each VM until it is gone; the mean of all repetitions in this run. */
  readonly ms: number;
  /** The median of its single deletes, which pauses of the server hardly affect. */
  readonly middleMs: number;
}

export type Run = Readonly<Record<Solution, Deletion>>;

export interface Deletions {
  readonly batches: readonly { readonly batch: Batch; readonly runs: readonly Run[] }[];
  /** The time of one `kubectl delete vm --all` with the policy, or the reason why it was not measured. */
  readonly kubectl: { readonly count: number; readonly seconds: number; readonly version: string } | string;
}

export interface DeletionOptions {
  readonly runs: number;
  readonly batches: readonly Batch[];
  readonly kubectlVms: number;
  /** The number of dry-run deletes of each solution before the measurement. */
  readonly rehearsals: number;
}

const PRELOADED = new URL('./unprotected-plane.ts', import.meta.url);
const PLANE = { nodes: 2, hypervisor: 'fake', nodeOptions: `--import ${PRELOADED.href}` } as const;

export async function measureDeletions(bench: VmBench, options: DeletionOptions): Promise<Deletions> {
  await bench.startPlane(PLANE);
  const [vms, webhook] = [
    new JobProcess<VmDeletesJob>('./delete-protection/vm-deletes.ts'),
    new JobProcess<WebhookServerJob>('./webhook-server.ts'),
  ];
  try {
    const { cert, key, ca } = await engineCertificate(bench.dataDir);
    const port = await webhook.run<number>({ kind: 'start', cert, key });
    await installGuards(await bench.client(), { port, ca });
    await vms.run({ kind: 'open', target: await bench.target() });
    await warmUp(vms, options.rehearsals);
    const batches = [];
    for (const batch of options.batches) {
      // The first run does not count, because V8 has to warm up for this kind of VM.
      await measureRun(vms, { ...batch, times: 1 }, 0);
      const runs: Run[] = [];
      while (runs.length < options.runs) runs.push(await measureRun(vms, batch, runs.length));
      batches.push({ batch, runs });
    }
    return { batches, kubectl: await deleteByKubectl(bench, vms, options.kubectlVms) };
  } finally {
    await Promise.all([vms.stop(), webhook.stop()]);
  }
}

type Vms = JobProcess<VmDeletesJob>;

/** Runs dry-run deletes, because V8 needs some thousand evaluations until a guard reaches its final speed. */
async function warmUp(vms: Vms, times: number): Promise<void> {
  const keys = SOLUTIONS.map((solution) => `${NAMESPACE_OF[solution]}/rehearsal`);
  await vms.run({ kind: 'make', vms: keys, running: false, labels: UNPROTECTED_LABELS });
  await vms.run({ kind: 'rehearse', vms: keys, times });
  await vms.run({ kind: 'delete', vms: keys });
}

async function measureRun(vms: Vms, { count, running, times }: Batch, number: number): Promise<Run> {
  const timesOf = new Map(SOLUTIONS.map((solution) => [solution, [] as number[]]));
  for (let time = 0; time < times; time++) {
    const from = (number * times + time) * count;
    const turns = Array.from({ length: count }, (_, index) =>
      solutionOrder(from + index).map((solution) => ({ solution, key: `${NAMESPACE_OF[solution]}/vm-${index}` })),
    ).flat();
    const keys = turns.map(({ key }) => key);
    await vms.run({ kind: 'make', vms: keys, running, labels: UNPROTECTED_LABELS });
    const each = await vms.run<number[]>({ kind: 'delete', vms: keys });
    for (const [index, { solution }] of turns.entries()) timesOf.get(solution)!.push(each[index]!);
  }
  const deletions = [...timesOf].map(([solution, all]): [Solution, Deletion] => {
    const ms = all.reduce((sum, one) => sum + one, 0) / times;
    return [solution, { ms, middleMs: median(all) }];
  });
  return Object.fromEntries(deletions) as Run;
}

async function deleteByKubectl(bench: VmBench, vms: Vms, count: number): Promise<Deletions['kubectl']> {
  const kubectl = findNewKubectl();
  if ('missing' in kubectl) return kubectl.missing;
  const namespace = NAMESPACE_OF.VAP;
  const keys = Array.from({ length: count }, (_, index) => `${namespace}/kubectl-${index}`);
  await vms.run({ kind: 'make', vms: keys, running: false, labels: UNPROTECTED_LABELS });
  // With its own home directory, so that its caches are those of this plane. The first command fills them.
  const env = { ...process.env, HOME: bench.dir, KUBECONFIG: bench.kubeconfig };
  const execute = promisify(execFile);
  await execute(kubectl.path, ['get', 'vm', '-n', namespace], { env });
  const from = performance.now();
  await execute(kubectl.path, ['delete', 'vm', '--all', '-n', namespace], { env });
  return { count, seconds: (performance.now() - from) / 1000, version: kubectl.version };
}
