/**
 * Measures how fast the Job changes the machine types of stopped VMs, compared with a bare client that patches the same
 * field of the same VMs on the same server. Both alternate: the client sets what the Job clears.
 */
import { specType } from '#api/machine-types/select-vm.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { listAll } from '#client/paged-list.ts';
import { JobProcess } from '../jobs.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { NAMESPACE } from '../vms/manifests.ts';
import { waitUntilIdle } from '../vms/measure-fleet.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { runTransitionJob, type JobRun } from './transition-job.ts';
import type { Patches, VmPatchesJob } from './vm-patches.ts';

export interface TransitionOptions {
  readonly vms: number;
  /** The number of rounds, each with a turn of the client and a turn of the Job; the medians count. */
  readonly rounds: number;
}

/** The bar: the share of the rate of bare patches. */
const MIN_RATIO = 0.5;
/** One idle node. */
const PLANE = { nodes: 1, hypervisor: 'fake' } as const;
const JOB_OPTIONS = { glob: '*rhel-8.*', restartNow: false, maxRestarts: 10, maxFailures: Infinity };

export async function* measureTransition(bench: VmBench, { vms, rounds }: TransitionOptions): AsyncGenerator<Row> {
  await bench.startPlane(PLANE);
  const load = new JobProcess<VmPatchesJob>('./machine-types/vm-patches.ts');
  try {
    const target = await bench.target();
    await load.run({ kind: 'make', target, count: vms });
    const turns: Turn[] = [];
    // The first round does not count, because V8 has to warm up for both.
    for (let round = 0; round <= rounds; round++) {
      await waitUntilIdle(bench);
      const label = await load.run<Patches>({ kind: 'label', target, count: vms });
      await waitUntilIdle(bench);
      const bare = await load.run<Patches>({ kind: 'type', target, count: vms });
      await expectTypes(bench, vms);
      await waitUntilIdle(bench);
      const job = await runTransitionJob(bench, JOB_OPTIONS);
      await expectTypes(bench, 0);
      if (job.done !== vms) throw new Error(`The Job has completed ${job.done} VMs; expected ${vms}`);
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
  const medianOf = (figure: (turn: Turn) => number) => median(turns.map(figure));
  const many = vms.toLocaleString('en');
  const ratio = (turn: Turn, jobSeconds: number) => turn.bare.seconds / jobSeconds;
  const ratios = turns.map((turn) => `${(ratio(turn, turn.job.seconds) * 100).toFixed(0)} %`).join(', ');
  const [plan, update] = [medianOf(({ job }) => job.planSeconds), medianOf(({ job }) => job.updateSeconds)];
  const end = medianOf(({ job }) => job.seconds - job.planSeconds - job.updateSeconds);
  const floor = {
    unit: 'perSecond',
    floor: vms / medianOf(({ bare }) => bare.seconds),
    floorCpuUs: (medianOf(({ bare }) => bare.serverCpuMs) * 1000) / vms,
  } as const;
  yield {
    ...floor,
    what: 'machine types, plan and update',
    engine: vms / medianOf(({ job }) => job.seconds),
    ratio: medianOf((turn) => ratio(turn, turn.job.seconds)),
    bar: { ratioAtLeast: MIN_RATIO },
    cpuUs: (medianOf(({ job }) => job.serverCpuMs) * 1000) / vms,
    serverCores: medianOf(({ job }) => job.serverCpuMs / 1000 / job.seconds),
    clientCores: medianOf(({ bare }) => bare.clientCores),
    note: `${many} stopped VMs: planned after ${plan.toFixed(2)} s, updated in ${update.toFixed(2)} s, ended after ${end.toFixed(2)} s more; ${ratios}`,
  };
  yield {
    unit: 'perSecond',
    what: '  from the plan to the last VM',
    engine: vms / update,
    floor: floor.floor,
    ratio: medianOf((turn) => ratio(turn, turn.job.updateSeconds)),
  };
  yield {
    unit: 'perSecond',
    what: '  merge patches of a label',
    engine: vms / medianOf(({ label }) => label.seconds),
    floor: floor.floor,
    ratio: medianOf(({ label, bare }) => bare.seconds / label.seconds),
    cpuUs: (medianOf(({ label }) => label.serverCpuMs) * 1000) / vms,
    floorCpuUs: floor.floorCpuUs,
    note: 'of the same VMs, by the same bare client: the spec does not change',
  };
}

/** Throws unless exactly `count` VMs have a machine type in their spec. */
async function expectTypes(bench: VmBench, count: number): Promise<void> {
  const { items } = await listAll(await bench.client(), VIRTUAL_MACHINES, { namespace: NAMESPACE });
  const typed = items.filter((vm) => specType(vm) !== '').length;
  if (typed !== count) throw new Error(`${typed} of ${items.length} VMs have a machine type; expected ${count}`);
}
