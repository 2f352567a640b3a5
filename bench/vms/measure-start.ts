/**
 * Measures `kubectl apply` of a VM until its guest runs, compared with the same QEMU started manually. For the plane,
 * the end is when a watch shows the guest's pod as Running: the agent writes that after QEMU has answered `cont`, so
 * the plane is charged with one more durable write than QEMU.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { findNewKubectl } from '#test/support/kubectl.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { readGuestCommand, startManually, type GuestCommand } from './manual-start.ts';
import { exampleVm, NAMESPACE } from './manifests.ts';
import { findProcessesIn } from './processes-in-dir.ts';
import { StartMarks } from './start-marks.ts';
import type { VmBench } from './vm-bench.ts';

const MAX_MORE_MS = 250;
const execute = promisify(execFile);

export async function measureStart(bench: VmBench, rounds: number): Promise<Row[]> {
  const kubectl = findNewKubectl();
  if ('missing' in kubectl) throw new Error(`Cannot measure starts: ${kubectl.missing}`);
  await bench.startPlane({ nodes: 1, hypervisor: 'qemu' });
  const marks = await StartMarks.open(await bench.client());
  const starter = new Starter(bench, kubectl.path, marks);
  // The first one fills the caches of kubectl, the disk and V8, and provides the command.
  let command = (await starter.start('warm-up')).command;
  await startManually(command, bench.dir, 'warm-up');
  const planeStarts: Start[] = [];
  const manualStarts: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startOnPlane = async () => {
      const start = await starter.start(`bench-${round}`);
      command = start.command;
      planeStarts.push(start);
    };
    const startManual = async () => void manualStarts.push(await startManually(command, bench.dir, `hand-${round}`));
    for (const turn of round % 2 === 0 ? [startOnPlane, startManual] : [startManual, startOnPlane]) await turn();
  }
  marks.stop();
  await bench.stopPlane();
  const medianOf = (of: (start: Start) => number) => median(planeStarts.map(of));
  const [engine, floor] = [medianOf(({ runs }) => runs), median(manualStarts)];
  const step = (what: string, of: (start: Start) => number): Row => ({ what, unit: 'ms', engine: medianOf(of) });
  return [
    {
      what: 'kubectl apply until a VM runs',
      unit: 'ms',
      engine,
      floor,
      bar: { moreThanFloor: MAX_MORE_MS },
      note: `${(engine - floor).toFixed(0)} ms more than manually; median of ${rounds}`,
    },
    {
      ...step('  kubectl, until the VM exists', ({ created }) => created),
      note: `kubectl ends after ${medianOf(({ kubectl }) => kubectl).toFixed(0)} ms`,
    },
    step('  until its pod is bound', ({ bound, created }) => bound - created),
    step('  until the agent has started QEMU', ({ called, bound }) => called - bound),
    {
      ...step('  until it runs and is reported', ({ runs, called }) => runs - called),
      floor,
      note: `VMI and VM are Running after ${medianOf(({ vmi }) => vmi).toFixed(0)} and ${medianOf(({ vm }) => vm).toFixed(0)} ms in total`,
    },
  ];
}

/** Milliseconds since the call of kubectl. */
interface Start {
  readonly kubectl: number;
  readonly created: number;
  readonly bound: number;
  /** The start of QEMU by the agent. */
  readonly called: number;
  readonly runs: number;
  readonly vmi: number;
  readonly vm: number;
  readonly command: GuestCommand;
}

class Starter {
  readonly #bench: VmBench;
  readonly #kubectl: string;
  readonly #marks: StartMarks;

  constructor(bench: VmBench, kubectl: string, marks: StartMarks) {
    this.#bench = bench;
    this.#kubectl = kubectl;
    this.#marks = marks;
  }

  /** Starts a VM and deletes it again. */
  async start(name: string): Promise<Start> {
    const { dir, kubeconfig } = this.#bench;
    const file = join(dir, `${name}.json`);
    await writeFile(file, JSON.stringify(exampleVm(name)));
    const from = performance.now();
    // With its own home directory, so that its caches are those of this plane.
    const env = { ...process.env, HOME: dir, KUBECONFIG: kubeconfig };
    const applied = execute(this.#kubectl, ['apply', '-f', file], { env }).then(() => performance.now());
    applied.catch(() => {});
    const at = async (mark: Parameters<StartMarks['timeOf']>[1]) => (await this.#marks.timeOf(name, mark)) - from;
    const kubectl = (await applied) - from;
    const [created, bound, runs] = [await at('created'), await at('podBound'), await at('podRunning')];
    const [vmi, vm] = [await at('vmiRunning'), await at('vmRunning')];
    const guest = findProcessesIn(dir).find(({ words }) => words.includes(`guest=${NAMESPACE}/${name}`));
    if (guest === undefined)
      throw new Error(`Cannot measure the start of VM ${name}: it is Running, but there is no QEMU process`);
    const command = await readGuestCommand(guest.pid);
    const called = (await startedAtMs(guest.cwd)) - performance.timeOrigin - from;
    await (await this.#bench.client()).delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
    await at('gone');
    return { kubectl, created, bound, called, runs, vmi, vm, command };
  }
}

/** Reads when the agent started QEMU, which it records in domain.json. */
async function startedAtMs(cwd: string): Promise<number> {
  const record = JSON.parse(await readFile(join(dirname(cwd), 'domain.json'), 'utf8')) as Record;
  return record.started.startedAtMs;
}

interface Record {
  readonly started: { readonly startedAtMs: number };
}
