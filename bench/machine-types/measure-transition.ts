/**
 * How fast the Job changes the machine types of stopped VMs, beside what the same server does when a bare client patches
 * the same field of the same VMs. Both take turns: the client sets what the Job clears.
 */
import { specType } from '#api/machine-types/select-vm.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { listAll } from '#client/paged-list.ts';
import { JobProcess } from '../jobs.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { NAMESPACE } from '../vms/manifests.ts';
import { quiet } from '../vms/measure-fleet.ts';
import type { VmGround } from '../vms/vm-ground.ts';
import { runTransitionJob, type JobRun } from './transition-job.ts';
import type { Patches, VmPatchesJob } from './vm-patches.ts';

export interface TransitionOptions {
  readonly vms: number;
  /** Each with the client's turn and the Job's; the medians count. */
  readonly rounds: number;
}

/** Of the rate of bare patches. */
const AT_LEAST = 0.5;
/** One node, which is not asked for anything. */
const PLANE = { nodes: 1, hypervisor: 'fake' } as const;
const ASKED = { glob: '*rhel-8.*', restartNow: false, maxRestarts: 10, maxFailures: Infinity };

export async function* measureTransition(ground: VmGround, { vms, rounds }: TransitionOptions): AsyncGenerator<Row> {
  await ground.startPlane(PLANE);
  const load = new JobProcess<VmPatchesJob>('./machine-types/vm-patches.ts');
  try {
    const target = await ground.target();
    await load.ask({ kind: 'make', target, count: vms });
    const turns: Turn[] = [];
    // The first does not count: by then V8 has seen both.
    for (let round = 0; round <= rounds; round++) {
      await quiet(ground);
      const label = await load.ask<Patches>({ kind: 'label', target, count: vms });
      await quiet(ground);
      const bare = await load.ask<Patches>({ kind: 'type', target, count: vms });
      await expectTypes(ground, vms);
      await quiet(ground);
      const job = await runTransitionJob(ground, ASKED);
      await expectTypes(ground, 0);
      if (job.done !== vms) throw new Error(`The Job has done ${job.done} VMs; expected ${vms}`);
      if (round > 0) turns.push({ label, bare, job });
    }
    yield* rowsOf(vms, turns);
  } finally {
    await load.stop();
  }
}

interface Turn {
  readonly label: Patches;
  readonly bare: Patches;
  readonly job: JobRun;
}

function* rowsOf(vms: number, turns: readonly Turn[]): Generator<Row> {
  const middle = (figure: (turn: Turn) => number) => median(turns.map(figure));
  const many = vms.toLocaleString('en');
  const ratio = (turn: Turn, jobSeconds: number) => turn.bare.seconds / jobSeconds;
  const ratios = turns.map((turn) => `${(ratio(turn, turn.job.seconds) * 100).toFixed(0)} %`).join(', ');
  const [plan, update] = [middle(({ job }) => job.planSeconds), middle(({ job }) => job.updateSeconds)];
  const end = middle(({ job }) => job.seconds - job.planSeconds - job.updateSeconds);
  const floor = {
    unit: 'perSecond',
    floor: vms / middle(({ bare }) => bare.seconds),
    floorCpuUs: (middle(({ bare }) => bare.serverCpuMs) * 1000) / vms,
  } as const;
  yield {
    ...floor,
    what: 'machine types, plan and update',
    engine: vms / middle(({ job }) => job.seconds),
    ratio: middle((turn) => ratio(turn, turn.job.seconds)),
    bar: { ratioAtLeast: AT_LEAST },
    cpuUs: (middle(({ job }) => job.serverCpuMs) * 1000) / vms,
    serverCores: middle(({ job }) => job.serverCpuMs / 1000 / job.seconds),
    clientCores: middle(({ bare }) => bare.clientCores),
    note: `${many} stopped VMs: planned after ${plan.toFixed(2)} s, updated in ${update.toFixed(2)} s, ended after ${end.toFixed(2)} s more; ${ratios}`,
  };
  yield {
    unit: 'perSecond',
    what: '  from the plan to the last VM',
    engine: vms / update,
    floor: floor.floor,
    ratio: middle((turn) => ratio(turn, turn.job.updateSeconds)),
  };
  yield {
    unit: 'perSecond',
    what: '  merge patches of a label',
    engine: vms / middle(({ label }) => label.seconds),
    floor: floor.floor,
    ratio: middle(({ label, bare }) => bare.seconds / label.seconds),
    cpuUs: (middle(({ label }) => label.serverCpuMs) * 1000) / vms,
    floorCpuUs: floor.floorCpuUs,
    note: 'of the same VMs, by the same bare client: the spec stays as it is',
  };
}

/** So many VMs have a type of their own. */
async function expectTypes(ground: VmGround, count: number): Promise<void> {
  const { items } = await listAll(await ground.client(), VIRTUAL_MACHINES, { namespace: NAMESPACE });
  const typed = items.filter((vm) => specType(vm) !== '').length;
  if (typed !== count) throw new Error(`${typed} of ${items.length} VMs have a machine type; expected ${count}`);
}
