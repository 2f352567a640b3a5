/**
 * What delete protection costs those who delete: the seed's comparison of no protection, policy and webhook, on a plane
 * with simulated guests. The solutions take turns VM by VM, so that drift and garbage hit all alike.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { newKubectl } from '#test/support/kubectl.ts';
import { engineCertificate } from '../engine-process.ts';
import { JobProcess } from '../jobs.ts';
import { median } from '../statistics.ts';
import type { VmGround } from '../vms/vm-ground.ts';
import type { WebhookServerJob } from '../webhook-server.ts';
import { NAMESPACE_OF, putUpGuards, SOLUTIONS, UNPROTECTED_LABELS, type Solution } from './guards.ts';
import { turnsOf } from './turns.ts';
import type { VmDeletesJob } from './vm-deletes.ts';

/** So many VMs of each solution. */
export interface Batch {
  readonly count: number;
  readonly running: boolean;
  /** How often they are made and deleted in each run. One pause of the server is a large part of a small batch. */
  readonly times: number;
}

export interface Deletion {
  /** From the DELETE of each VM until it is gone, all of them together; the mean of all times in this run. */
  readonly ms: number;
  /** The middle one of all its deletes, which pauses of the server hardly touch. */
  readonly middleMs: number;
}

export type Run = Readonly<Record<Solution, Deletion>>;

export interface Deletions {
  readonly batches: readonly { readonly batch: Batch; readonly runs: readonly Run[] }[];
  /** One `kubectl delete vm --all` with the policy in force; or why there is none. */
  readonly kubectl: { readonly count: number; readonly seconds: number; readonly version: string } | string;
}

export interface DeletionOptions {
  readonly runs: number;
  readonly batches: readonly Batch[];
  readonly kubectlVms: number;
  /** Deletes of each solution that are not carried out, before anything is measured. */
  readonly rehearsals: number;
}

const PRELOADED = new URL('./unprotected-plane.ts', import.meta.url);
const PLANE = { nodes: 2, hypervisor: 'fake', nodeOptions: `--import ${PRELOADED.href}` } as const;

export async function measureDeletions(ground: VmGround, options: DeletionOptions): Promise<Deletions> {
  await ground.startPlane(PLANE);
  const [vms, webhook] = [
    new JobProcess<VmDeletesJob>('./delete-protection/vm-deletes.ts'),
    new JobProcess<WebhookServerJob>('./webhook-server.ts'),
  ];
  try {
    const { cert, key, ca } = await engineCertificate(ground.dataDir);
    const port = await webhook.ask<number>({ kind: 'start', cert, key });
    await putUpGuards(await ground.client(), { port, ca });
    await vms.ask({ kind: 'open', target: await ground.target() });
    await rehearse(vms, options.rehearsals);
    const batches = [];
    for (const batch of options.batches) {
      // The first does not count: by then V8 has seen VMs of that sort go.
      await run(vms, { ...batch, times: 1 }, 0);
      const runs: Run[] = [];
      while (runs.length < options.runs) runs.push(await run(vms, batch, runs.length));
      batches.push({ batch, runs });
    }
    return { batches, kubectl: await deleteByKubectl(ground, vms, options.kubectlVms) };
  } finally {
    await Promise.all([vms.stop(), webhook.stop()]);
  }
}

type Vms = JobProcess<VmDeletesJob>;

/** A guard stands for months; V8 has to see these some thousand times before they are as fast as they will be. */
async function rehearse(vms: Vms, times: number): Promise<void> {
  const keys = SOLUTIONS.map((solution) => `${NAMESPACE_OF[solution]}/rehearsal`);
  await vms.ask({ kind: 'make', vms: keys, running: false, labels: UNPROTECTED_LABELS });
  await vms.ask({ kind: 'rehearse', vms: keys, times });
  await vms.ask({ kind: 'delete', vms: keys });
}

async function run(vms: Vms, { count, running, times }: Batch, number: number): Promise<Run> {
  const taken = new Map(SOLUTIONS.map((solution) => [solution, [] as number[]]));
  for (let time = 0; time < times; time++) {
    const from = (number * times + time) * count;
    const turns = Array.from({ length: count }, (_, index) =>
      turnsOf(from + index).map((solution) => ({ solution, key: `${NAMESPACE_OF[solution]}/vm-${index}` })),
    ).flat();
    const keys = turns.map(({ key }) => key);
    await vms.ask({ kind: 'make', vms: keys, running, labels: UNPROTECTED_LABELS });
    const each = await vms.ask<number[]>({ kind: 'delete', vms: keys });
    for (const [index, { solution }] of turns.entries()) taken.get(solution)!.push(each[index]!);
  }
  const deletions = [...taken].map(([solution, all]): [Solution, Deletion] => {
    const ms = all.reduce((sum, one) => sum + one, 0) / times;
    return [solution, { ms, middleMs: median(all) }];
  });
  return Object.fromEntries(deletions) as Run;
}

async function deleteByKubectl(ground: VmGround, vms: Vms, count: number): Promise<Deletions['kubectl']> {
  const kubectl = newKubectl();
  if ('missing' in kubectl) return kubectl.missing;
  const namespace = NAMESPACE_OF.VAP;
  const keys = Array.from({ length: count }, (_, index) => `${namespace}/kubectl-${index}`);
  await vms.ask({ kind: 'make', vms: keys, running: false, labels: UNPROTECTED_LABELS });
  // A home of its own: its caches are those of this plane, and filled by the first command.
  const env = { ...process.env, HOME: ground.dir, KUBECONFIG: ground.kubeconfig };
  const execute = promisify(execFile);
  await execute(kubectl.path, ['get', 'vm', '-n', namespace], { env });
  const from = performance.now();
  await execute(kubectl.path, ['delete', 'vm', '--all', '-n', namespace], { env });
  return { count, seconds: (performance.now() - from) / 1000, version: kubectl.version };
}
