/**
 * Somebody is lost in the middle of a migration: the server after each of its writes, an agent at each message, at each
 * step that is on its disk and after each of its own writes, a guest at each message. Whoever it is comes back a moment
 * later. Then there is one guest, where the objects say; what it last wrote into its TPM, its EFI variables and its disk
 * is there, and what it had in mind too, unless it was the guest that died. Both outcomes are seen, and each is what the
 * migration says it was. All of it with the state of the VM in each combination of volume mode and access mode; every
 * combination at some of the points in each run, and at all of them in a full run.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { STATE_CONFLICT } from '#api/state-conflict.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import {
  aMigration,
  judge,
  phaseOf,
  startMovingVm,
  STATE_STORAGES,
  VM,
  whereIs,
  writeAll,
  type StateStorageClass,
} from '#test/support/moving-vm.ts';
import { VmPlane } from '#test/support/vm-plane.ts';
import type { SimulatedNode } from '#test/support/vm-plane-nodes.ts';

/** Something that happens in a migration, by the side at which it does, and how often it did so before. */
interface Point {
  readonly what: string;
  readonly side: 'source' | 'target';
}

type Victim = 'source agent' | 'target agent' | 'source guest' | 'target guest';

const VICTIMS: readonly Victim[] = ['source agent', 'target agent', 'source guest', 'target guest'];
/** Fewer would mean that the story does not do what it tells of. */
const LEAST = { messages: 6, steps: 6, agentWrites: 4, serverWrites: 25 };
const MOST_WRITES = 120;
/** Longer than any of them waits for another. */
const PATIENCE_MS = 90_000;

class Story {
  readonly plane: VmPlane;
  readonly stateClass: StateStorageClass;
  readonly outcomes = new Set<string>();
  #count = 0;

  constructor(plane: VmPlane, stateClass: StateStorageClass) {
    this.plane = plane;
    this.stateClass = stateClass;
  }

  sides(): { source: SimulatedNode; target: SimulatedNode } {
    const { node: source } = whereIs(this.plane);
    return { source, target: this.plane.nodes.find((node) => node !== source)! };
  }

  /** Calls with everything that happens, as it happens, and before anybody hears of it. */
  watch(seen: (point: Point) => void): void {
    const { source, target } = this.sides();
    const sideOf = (node: string) => (node === source.name ? 'source' : 'target');
    const happened = new Map<string, number>();
    const tell = (what: string, side: Point['side']) => {
      const times = happened.get(`${side} ${what}`) ?? 0;
      happened.set(`${side} ${what}`, times + 1);
      seen({ what: `${what} ${times}`, side });
    };
    this.plane.streams.onMessage = ({ from, type }) => tell(`message ${type}`, sideOf(from));
    for (const node of [source, target]) {
      node.host.onStep = (_, step) => tell(`step ${step}`, sideOf(node.name));
      node.onWrite = (what) => {
        if (what.includes('/events') || what.includes('/leases')) return;
        // Pods and volumes of state have another name each time.
        tell(`write ${what.replace(/(virt-launcher|pvc)-[^/]+/, 'ANY')}`, sideOf(node.name));
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

  /** One migration, in which this is done on the way; judged when all is quiet. */
  async tell(strike: (name: string) => Promise<void>, { restarted = false } = {}): Promise<string> {
    const name = `m${++this.#count}`;
    await writeAll(this.plane, name);
    const { source, target } = this.sides();
    await this.plane.put(aMigration(name));
    await strike(name);
    this.unwatch();
    await this.plane.advance(PATIENCE_MS);
    const outcome = await phaseOf(this.plane, name);
    assert.match(outcome, /^(Succeeded|Failed: \S.*)$/);
    await judge(this.plane, name, { restarted, stateClass: this.stateClass });
    assert.equal(whereIs(this.plane).node, outcome === 'Succeeded' ? target : source, outcome);
    this.outcomes.add(outcome.split(':')[0]!);
    return outcome;
  }

  /** Somebody dies at this point. */
  async cut(point: Point, victim: Victim): Promise<string> {
    const { source, target } = this.sides();
    const node = victim.startsWith('source') ? source : target;
    const isAgent = victim.endsWith('agent');
    let did = false;
    this.watch((one) => {
      if (did || one.what !== point.what || one.side !== point.side) return;
      did = true;
      if (isAgent) node.slam();
      else for (const guest of node.living(`default/${VM}`)) guest.crash('it was killed');
    });
    const strike = async () => {
      await this.plane.settle();
      if (!did || !isAgent) return;
      await this.plane.killNode(node.name);
      await this.plane.bringBack(node.name);
    };
    const outcome = await this.tell(strike, { restarted: !isAgent });
    assert.ok(did, 'it came to that');
    return outcome;
  }
}

/** Of how many points of each sort one is taken. */
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
  describe(`a migration in which somebody is lost, with state on ${modes}`, () => {
    cutEverywhere(stateClass as StateStorageClass, sampling, turn);
  });
}

function cutEverywhere(stateClass: StateStorageClass, sampling: Sampling, turn: number): void {
  let story: Story;
  const points: Point[] = [];

  before(async () => {
    const plane = new VmPlane({});
    await plane.start();
    await startMovingVm(plane, stateClass);
    story = new Story(plane, stateClass);
    // One undisturbed, to learn what happens in it.
    story.watch((point) => points.push(point));
    assert.equal(await story.tell(() => story.plane.settle()), 'Succeeded');
  });

  after(async () => {
    await story.plane.stop();
  });

  it('is what we think it is', () => {
    const count = (kind: string) => points.filter(({ what }) => what.startsWith(kind)).length;
    const seen = { messages: count('message'), steps: count('step'), agentWrites: count('write') };
    for (const [kind, least] of Object.entries(LEAST)) {
      if (kind in seen) assert.ok(seen[kind as keyof typeof seen] >= least, `${kind}: ${JSON.stringify(points)}`);
    }
  });

  for (const [index, victim] of VICTIMS.entries()) {
    it(`the ${victim}, at ${oneOf(sampling.messages, 'message')}`, async () => {
      const messages = points.filter(({ what }) => what.startsWith('message'));
      const chosen = sample(messages, sampling.messages, turn + index);
      assert.ok(chosen.length > 0);
      for (const point of chosen) {
        await told(`${victim} at ${point.side} ${point.what}`, () => story.cut(point, victim));
      }
    });
  }

  for (const victim of ['source agent', 'target agent'] as const) {
    it(`the ${victim}, at ${oneOf(sampling.steps, 'step on its disk or write of its own')}`, async () => {
      const own = points.filter(({ what, side }) => victim.startsWith(side) && !what.startsWith('message'));
      const chosen = sample(own, sampling.steps, turn);
      assert.ok(chosen.length > 0);
      for (const point of chosen) await told(`${victim} at ${point.what}`, () => story.cut(point, victim));
    });
  }

  for (const agents of [false, true]) {
    const step = (agents ? 3 : 1) * sampling.serverWrites;
    it(`the server, after ${oneOf(step, 'write')}${agents ? ', with all agents' : ''}`, async () => {
      let writes = sampling === SPARSE ? turn : 0;
      for (; writes <= MOST_WRITES; writes += step) {
        const cut = story.plane.cutAfter(writes + 1);
        const strike = async () => {
          const outcome = await Promise.race([
            cut,
            story.plane.settle().then(
              () => 'done',
              () => 'cut',
            ),
          ]);
          if (outcome === 'cut') await story.plane.restartServer({ agents });
          else void story.plane.cutAfter(Infinity);
          over = outcome !== 'cut';
        };
        let over = false;
        await told(`server after write ${writes}`, () => story.tell(strike));
        if (over) break;
      }
      assert.ok(writes >= LEAST.serverWrites && writes < MOST_WRITES, `${writes} writes`);
    });
  }

  it('never takes the claims of its own migration for those of somebody else', async () => {
    const events = await story.plane.events(VM);
    assert.ok(events.length > 0);
    assert.deepEqual(
      events.filter((event) => event.startsWith(STATE_CONFLICT)),
      [],
    );
  });

  it('ends either way', () => {
    assert.deepEqual([...story.outcomes].sort(), ['Failed', 'Succeeded']);
  });
}

function oneOf(every: number, point: string): string {
  return every === 1 ? `every ${point}` : `one ${point} in ${every}`;
}

/** Says where, when something does not hold. */
async function told<T>(where: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
