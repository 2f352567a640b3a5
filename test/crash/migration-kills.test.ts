/**
 * Kills a component in the middle of a migration: the server after each of its writes, an agent at each message, at each
 * step that it records and after each of its own writes, a guest at each message. The component returns shortly after.
 * Then one guest runs, on the node that the objects name; the last data in its TPM, its EFI variables and on its disk is
 * there, and its memory too, unless the guest was killed. Both outcomes occur, and each agrees with the status of the
 * migration. All of this runs with the state of the VM in each combination of volume mode and access mode: a sample of
 * the points in each run, all of them in a full run.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { STATE_CONFLICT } from '#api/storage/state-conflict.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import {
  aMigration,
  assertInvariants,
  migrationPhase,
  startMigratingVm,
  STATE_STORAGES,
  VM,
  locateGuest,
  writeEverywhere,
  type StateStorageClass,
} from '#test/support/migrating-vm.ts';
import { VmPlane } from '#test/support/vm-plane.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';

/** An event in a migration: what happened, on which side, with a count of earlier ones. */
interface Point {
  readonly what: string;
  readonly side: 'source' | 'target';
}

type Victim = 'source agent' | 'target agent' | 'source guest' | 'target guest';

const VICTIMS: readonly Victim[] = ['source agent', 'target agent', 'source guest', 'target guest'];
/** Fewer points mean that the migration does not do what it should. */
const LEAST = { messages: 6, steps: 6, agentWrites: 4, serverWrites: 25 };
const MOST_WRITES = 120;
/** Longer than any component waits for another. */
const LONGEST_WAIT_MS = 90_000;

class MigrationRun {
  readonly plane: VmPlane;
  readonly stateClass: StateStorageClass;
  readonly outcomes = new Set<string>();
  #count = 0;

  constructor(plane: VmPlane, stateClass: StateStorageClass) {
    this.plane = plane;
    this.stateClass = stateClass;
  }

  sides(): { source: SimulatedNode; target: SimulatedNode } {
    const { node: source } = locateGuest(this.plane);
    return { source, target: this.plane.nodes.find((node) => node !== source)! };
  }

  /** Calls `onPoint` for each event before any other component can react to it. */
  watch(onPoint: (point: Point) => void): void {
    const { source, target } = this.sides();
    const sideOf = (node: string) => (node === source.name ? 'source' : 'target');
    const counts = new Map<string, number>();
    const recordPoint = (what: string, side: Point['side']) => {
      const times = counts.get(`${side} ${what}`) ?? 0;
      counts.set(`${side} ${what}`, times + 1);
      onPoint({ what: `${what} ${times}`, side });
    };
    this.plane.streams.onMessage = ({ from, type }) => recordPoint(`message ${type}`, sideOf(from));
    for (const node of [source, target]) {
      node.host.onStep = (_, step) => recordPoint(`step ${step}`, sideOf(node.name));
      node.onWrite = (what) => {
        if (what.includes('/events') || what.includes('/leases')) return;
        // The names of launcher pods and state volumes differ each time.
        recordPoint(`write ${what.replace(/(virt-launcher|pvc)-[^/]+/, 'ANY')}`, sideOf(node.name));
      };
    }
  }

  unwatch(): void {
    this.plane.streams.onMessage = undefined;
    for (const node of this.plane.nodes) {
      node.host.onStep = undefined;
      node.onWrite = undefined;
    }
  }

  /** Runs one migration and calls `disturb` meanwhile; checks the outcome when the plane has settled. */
  async migrate(disturb: (name: string) => Promise<void>, { restarted = false } = {}): Promise<string> {
    const name = `m${++this.#count}`;
    await writeEverywhere(this.plane, name);
    const { source, target } = this.sides();
    await this.plane.beginApply(aMigration(name));
    await disturb(name);
    this.unwatch();
    await this.plane.advance(LONGEST_WAIT_MS);
    const outcome = await migrationPhase(this.plane, name);
    assert.match(outcome, /^(Succeeded|Failed: \S.*)$/);
    await assertInvariants(this.plane, name, { restarted, stateClass: this.stateClass });
    assert.equal(locateGuest(this.plane).node, outcome === 'Succeeded' ? target : source, outcome);
    this.outcomes.add(outcome.split(':')[0]!);
    return outcome;
  }

  /** Kills the victim at this point. */
  async killAt(point: Point, victim: Victim): Promise<string> {
    const { source, target } = this.sides();
    const node = victim.startsWith('source') ? source : target;
    const isAgent = victim.endsWith('agent');
    let wasReached = false;
    this.watch((one) => {
      if (wasReached || one.what !== point.what || one.side !== point.side) return;
      wasReached = true;
      if (isAgent) node.crashAgent();
      else for (const guest of node.livingGuests(`default/${VM}`)) guest.crash('it was killed');
    });
    const disturb = async () => {
      await this.plane.settle();
      if (!wasReached || !isAgent) return;
      await this.plane.killNode(node.name);
      await this.plane.reviveNode(node.name);
    };
    const outcome = await this.migrate(disturb, { restarted: !isAgent });
    assert.ok(wasReached, 'the point was reached');
    return outcome;
  }
}

/** One of this many points of each kind is tested. */
interface Sampling {
  readonly messages: number;
  readonly steps: number;
  readonly serverWrites: number;
}

const ALL: Sampling = { messages: 1, steps: 1, serverWrites: 1 };
const USUAL: Sampling = { messages: 2, steps: 1, serverWrites: 3 };
const SPARSE: Sampling = { messages: 6, steps: 6, serverWrites: 12 };

/** Returns every n-th point, beginning with another one for each `turn`. */
function sample<T>(points: readonly T[], every: number, turn: number): T[] {
  return points.filter((_, at) => at % every === turn % every);
}

for (const [turn, [stateClass, modes]] of Object.entries(STATE_STORAGES).entries()) {
  const sampling = FULL_RUN ? ALL : stateClass === 'local' ? USUAL : SPARSE;
  describe(`a migration with state on ${modes}`, () => {
    testAllPoints(stateClass as StateStorageClass, sampling, turn);
  });
}

function testAllPoints(stateClass: StateStorageClass, sampling: Sampling, turn: number): void {
  let migrations: MigrationRun;
  const points: Point[] = [];

  before(async () => {
    const plane = new VmPlane({});
    await plane.start();
    await startMigratingVm(plane, stateClass);
    migrations = new MigrationRun(plane, stateClass);
    // The first migration is not disturbed: it shows the points.
    migrations.watch((point) => points.push(point));
    assert.equal(await migrations.migrate(() => migrations.plane.settle()), 'Succeeded');
  });

  after(async () => {
    await migrations.plane.stop();
  });

  it('has the expected messages, steps and writes', () => {
    const count = (kind: string) => points.filter(({ what }) => what.startsWith(kind)).length;
    const seen = { messages: count('message'), steps: count('step'), agentWrites: count('write') };
    for (const [kind, least] of Object.entries(LEAST)) {
      if (kind in seen) assert.ok(seen[kind as keyof typeof seen] >= least, `${kind}: ${JSON.stringify(points)}`);
    }
  });

  for (const [index, victim] of VICTIMS.entries()) {
    it(`survives the kill of the ${victim} at ${oneOf(sampling.messages, 'message')}`, async () => {
      const messages = points.filter(({ what }) => what.startsWith('message'));
      const chosen = sample(messages, sampling.messages, turn + index);
      assert.ok(chosen.length > 0);
      for (const point of chosen) {
        await withContext(`${victim} at ${point.side} ${point.what}`, () => migrations.killAt(point, victim));
      }
    });
  }

  for (const victim of ['source agent', 'target agent'] as const) {
    it(`survives the kill of the ${victim} at ${oneOf(sampling.steps, 'recorded step or own write')}`, async () => {
      const own = points.filter(({ what, side }) => victim.startsWith(side) && !what.startsWith('message'));
      const chosen = sample(own, sampling.steps, turn);
      assert.ok(chosen.length > 0);
      for (const point of chosen)
        await withContext(`${victim} at ${point.what}`, () => migrations.killAt(point, victim));
    });
  }

  for (const agents of [false, true]) {
    const step = (agents ? 3 : 1) * sampling.serverWrites;
    it(`survives the kill of the server after ${oneOf(step, 'write')}${agents ? ', with all agents' : ''}`, async () => {
      let writes = sampling === SPARSE ? turn : 0;
      for (; writes <= MOST_WRITES; writes += step) {
        const cut = migrations.plane.cutAfter(writes + 1);
        const disturb = async () => {
          const outcome = await Promise.race([
            cut,
            migrations.plane.settle().then(
              () => 'done',
              () => 'cut',
            ),
          ]);
          if (outcome === 'cut') await migrations.plane.restartServer({ agents });
          else void migrations.plane.cutAfter(Infinity);
          isOver = outcome !== 'cut';
        };
        let isOver = false;
        await withContext(`server after write ${writes}`, () => migrations.migrate(disturb));
        if (isOver) break;
      }
      assert.ok(writes >= LEAST.serverWrites && writes < MOST_WRITES, `${writes} writes`);
    });
  }

  it('reports no state conflict', async () => {
    const events = await migrations.plane.eventsOf(VM);
    assert.ok(events.length > 0);
    assert.deepEqual(
      events.filter((event) => event.startsWith(STATE_CONFLICT)),
      [],
    );
  });

  it('succeeds or fails, depending on the time of the kill', () => {
    assert.deepEqual([...migrations.outcomes].sort(), ['Failed', 'Succeeded']);
  });
}

function oneOf(every: number, point: string): string {
  return every === 1 ? `every ${point}` : `one ${point} in ${every}`;
}

/** Adds the place to an error. */
async function withContext<T>(where: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
