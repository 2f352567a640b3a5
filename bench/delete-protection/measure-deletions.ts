/**
 * What delete protection costs those who delete: the seed's comparison of no protection, policy and webhook, on a plane
 * with simulated guests. The solutions take turns within each run, so that drift and garbage hit all alike.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { newKubectl } from '#test/support/kubectl.ts';
import { engineCertificate } from '../engine-process.ts';
import { JobProcess } from '../jobs.ts';
import type { VmGround } from '../vms/vm-ground.ts';
import type { WebhookServerJob } from '../webhook-server.ts';
import { Guards, SOLUTIONS, UNPROTECTED_LABELS, type Solution } from './guards.ts';
import type { Deletion, VmDeletesJob } from './vm-deletes.ts';

/** VMs that are deleted together. */
export interface Batch {
  readonly count: number;
  readonly running: boolean;
  /** How often, with each solution; what takes long needs fewer. */
  readonly runs: number;
}

/** One run: what deleting the whole batch took with each solution. */
export type Run = Readonly<Record<Solution, Deletion>>;

export interface Deletions {
  readonly batches: readonly { readonly batch: Batch; readonly runs: readonly Run[] }[];
  /** One `kubectl delete vm --all` with the policy in force; or why there is none. */
  readonly kubectl: { readonly count: number; readonly seconds: number; readonly version: string } | string;
}

export interface DeletionOptions {
  readonly batches: readonly Batch[];
  readonly kubectlVms: number;
  /** Deletes with each solution that are not carried out, before anything is measured. */
  readonly rehearsals: number;
}

/** After each change of the guard. */
const REHEARSALS = 500;

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
    const guards = await Guards.prepare(await ground.client(), { port, ca });
    await vms.ask({ kind: 'open', target: await ground.target() });
    const stage = { vms, guards };
    await vms.ask({ kind: 'make', names: [REHEARSED], running: false, labels: UNPROTECTED_LABELS });
    for (const solution of SOLUTIONS) await rehearse(stage, solution, options.rehearsals);
    // The first of each sort also warm up the compilers, and do not count.
    for (const batch of options.batches) await run(stage, batch, 0);
    const batches = [];
    for (const batch of options.batches) {
      const runs: Run[] = [];
      while (runs.length < batch.runs) runs.push(await run(stage, batch, runs.length));
      batches.push({ batch, runs });
    }
    await guards.change('VAP');
    await vms.ask({ kind: 'delete', names: [REHEARSED] });
    return { batches, kubectl: await deleteByKubectl(ground, stage, options.kubectlVms) };
  } finally {
    await Promise.all([vms.stop(), webhook.stop()]);
  }
}

interface Stage {
  readonly vms: JobProcess<VmDeletesJob>;
  readonly guards: Guards;
}

/**
 * A guard stands for months; here each has just been put up. What V8 has learned of the one before does not hold for it,
 * and it takes some hundred deletes until it has learned anew: those are not carried out, and not counted.
 */
const REHEARSED = 'rehearsal';

async function rehearse({ vms, guards }: Stage, solution: Solution, times: number): Promise<void> {
  await guards.change(solution);
  await vms.ask({ kind: 'rehearse', name: REHEARSED, times });
}

async function run({ vms, guards }: Stage, { count, running }: Batch, number: number): Promise<Run> {
  const namesOf = (solution: Solution) => numbered(`vm-${SOLUTIONS.indexOf(solution)}`, count);
  await vms.ask({ kind: 'make', names: SOLUTIONS.flatMap(namesOf), running, labels: UNPROTECTED_LABELS });
  const deletions: Partial<Record<Solution, Deletion>> = {};
  for (const solution of orderOf(number)) {
    await rehearse({ vms, guards }, solution, REHEARSALS);
    deletions[solution] = await vms.ask<Deletion>({ kind: 'delete', names: namesOf(solution) });
  }
  return deletions as Run;
}

/** Who begins changes from run to run, and so does who follows whom. */
function orderOf(number: number): Solution[] {
  const first = number % SOLUTIONS.length;
  const order = [...SOLUTIONS.slice(first), ...SOLUTIONS.slice(0, first)];
  return number % 2 === 0 ? order : order.reverse();
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

async function deleteByKubectl(ground: VmGround, { vms }: Stage, count: number): Promise<Deletions['kubectl']> {
  const kubectl = newKubectl();
  if ('missing' in kubectl) return kubectl.missing;
  await vms.ask({ kind: 'make', names: numbered('kubectl', count), running: false, labels: UNPROTECTED_LABELS });
  // A home of its own: its caches are those of this plane, and filled by the first command.
  const env = { ...process.env, HOME: ground.dir, KUBECONFIG: ground.kubeconfig };
  const execute = promisify(execFile);
  await execute(kubectl.path, ['get', 'vm'], { env });
  const from = performance.now();
  await execute(kubectl.path, ['delete', 'vm', '--all'], { env });
  return { count, seconds: (performance.now() - from) / 1000, version: kubectl.version };
}
