/**
 * `kubectl apply` of a VM until its guest runs, beside the same QEMU started by hand. The end for the plane is the
 * moment at which a client that watches sees the pod of the guest Running: the agent writes that after QEMU has answered
 * `cont`, so the plane is charged with one durable write more than QEMU needs.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { newKubectl } from '#test/support/kubectl.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import { commandOf, startByHand, type GuestCommand } from './by-hand.ts';
import { exampleVm, NAMESPACE } from './manifests.ts';
import { processesBelow } from './processes-below.ts';
import { StartMarks } from './start-marks.ts';
import type { VmGround } from './vm-ground.ts';

const MAX_MORE_MS = 250;
const run = promisify(execFile);

export async function measureStart(ground: VmGround, rounds: number): Promise<Row[]> {
  const kubectl = newKubectl();
  if ('missing' in kubectl) throw new Error(`Cannot measure starts: ${kubectl.missing}`);
  await ground.startPlane({ nodes: 1, hypervisor: 'qemu' });
  const marks = await StartMarks.open(await ground.client());
  const starter = new Starter(ground, kubectl.path, marks);
  // The first one fills the caches of kubectl, of the disk and of V8, and shows the command.
  let command = (await starter.start('warm-up')).command;
  await startByHand(command, ground.dir, 'warm-up');
  const planes: Start[] = [];
  const hands: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const plane = async () => {
      const start = await starter.start(`bench-${round}`);
      command = start.command;
      planes.push(start);
    };
    const hand = async () => void hands.push(await startByHand(command, ground.dir, `hand-${round}`));
    for (const turn of round % 2 === 0 ? [plane, hand] : [hand, plane]) await turn();
  }
  marks.stop();
  await ground.stopPlane();
  const middle = (of: (start: Start) => number) => median(planes.map(of));
  const [engine, floor] = [middle(({ runs }) => runs), median(hands)];
  const step = (what: string, of: (start: Start) => number): Row => ({ what, unit: 'ms', engine: middle(of) });
  return [
    {
      what: 'kubectl apply until a VM runs',
      unit: 'ms',
      engine,
      floor,
      bar: { moreThanFloor: MAX_MORE_MS },
      note: `${(engine - floor).toFixed(0)} ms more than by hand; median of ${rounds}`,
    },
    {
      ...step('  kubectl, until the VM is there', ({ created }) => created),
      note: `kubectl ends after ${middle(({ kubectl }) => kubectl).toFixed(0)} ms`,
    },
    step('  until its pod is bound', ({ bound, created }) => bound - created),
    step('  until the agent has called QEMU', ({ called, bound }) => called - bound),
    {
      ...step('  until it runs and that is told', ({ runs, called }) => runs - called),
      floor,
      note: `VMI and VM say Running after ${middle(({ vmi }) => vmi).toFixed(0)} and ${middle(({ vm }) => vm).toFixed(0)} ms in all`,
    },
  ];
}

/** Milliseconds since kubectl was called. */
interface Start {
  readonly kubectl: number;
  readonly created: number;
  readonly bound: number;
  /** The agent has spawned QEMU. */
  readonly called: number;
  readonly runs: number;
  readonly vmi: number;
  readonly vm: number;
  readonly command: GuestCommand;
}

class Starter {
  readonly #ground: VmGround;
  readonly #kubectl: string;
  readonly #marks: StartMarks;

  constructor(ground: VmGround, kubectl: string, marks: StartMarks) {
    this.#ground = ground;
    this.#kubectl = kubectl;
    this.#marks = marks;
  }

  /** Starts a VM and removes it again. */
  async start(name: string): Promise<Start> {
    const { dir, kubeconfig } = this.#ground;
    const file = join(dir, `${name}.json`);
    await writeFile(file, JSON.stringify(exampleVm(name)));
    const from = performance.now();
    // A home of its own: its caches are those of this plane.
    const env = { ...process.env, HOME: dir, KUBECONFIG: kubeconfig };
    const applied = run(this.#kubectl, ['apply', '-f', file], { env }).then(() => performance.now());
    applied.catch(() => {});
    const at = async (mark: Parameters<StartMarks['of']>[1]) => (await this.#marks.of(name, mark)) - from;
    const kubectl = (await applied) - from;
    const [created, bound, runs] = [await at('created'), await at('podBound'), await at('podRunning')];
    const [vmi, vm] = [await at('vmiRunning'), await at('vmRunning')];
    const guest = processesBelow(dir).find(({ words }) => words.includes(`guest=${NAMESPACE}/${name}`));
    if (guest === undefined) throw new Error(`VM ${name} runs, but no QEMU does`);
    const command = await commandOf(guest.pid);
    const called = (await startedAtMs(guest.cwd)) - performance.timeOrigin - from;
    await (await this.#ground.client()).delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
    await at('gone');
    return { kubectl, created, bound, called, runs, vmi, vm, command };
  }
}

/** The agent writes it down as soon as it has called QEMU. */
async function startedAtMs(cwd: string): Promise<number> {
  const record = JSON.parse(await readFile(join(dirname(cwd), 'domain.json'), 'utf8')) as Record;
  return record.started.startedAtMs;
}

interface Record {
  readonly started: { readonly startedAtMs: number };
}
