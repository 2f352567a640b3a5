import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import type { LinkState } from '#client/testing/fake-link.ts';
import { silentLog } from '#lib/log.ts';
import { LeadershipLostError, runWhileLeading } from '#runtime/leader-election.ts';
import type { LeaderElectionOptions } from '#runtime/leader-election.ts';
import { LEASES } from '#kube/core-kinds.ts';

const LEASE = { namespace: 'kube-system', name: 'controllers' };

interface Latency {
  ms(): number;
}

type CandidateOptions = Partial<LeaderElectionOptions> & { latency?: Latency; rate?: number; skewMs?: number };

class World {
  readonly api = new FakeApi();
  readonly clock = new FakeClock();
  readonly leaders = new Set<string>();
  readonly history: string[] = [];
  readonly candidates: Candidate[] = [];

  get spec() {
    return this.api.peek(LEASES, 'kube-system/controllers')?.spec;
  }

  join(identity: string, options?: CandidateOptions): Candidate {
    const candidate = new Candidate(this, identity, options);
    this.candidates.push(candidate);
    return candidate;
  }

  async stopAll(): Promise<void> {
    const all = Promise.all(this.candidates.map((candidate) => candidate.stop()));
    await this.clock.advance(30_000);
    await all;
  }
}

class Candidate {
  readonly link: FakeLink;
  readonly #controller = new AbortController();
  readonly done: Promise<void>;
  lostBy: unknown;

  constructor(world: World, identity: string, { latency, rate = 1, skewMs = 0, ...options }: CandidateOptions = {}) {
    const { api, clock, leaders, history } = world;
    this.link = new FakeLink(api, [LEASES], latency && { clock, ms: latency.ms });
    // The candidate's own clock: set wrongly, and slightly fast or slow.
    const own = {
      now: () => clock.now() + skewMs,
      elapsed: () => clock.elapsed() / rate,
      after: (ms: number, fn: () => void) => clock.after(ms * rate, fn),
    };
    this.done = runWhileLeading({
      client: this.link.client,
      clock: own,
      log: silentLog,
      lease: LEASE,
      identity,
      signal: this.#controller.signal,
      random: () => 0.5,
      lead: (signal) =>
        new Promise((resolve) => {
          assert.deepEqual([...leaders], [], `${identity} starts to lead while another candidate leads`);
          leaders.add(identity);
          history.push(identity);
          signal.addEventListener('abort', () => {
            this.lostBy = signal.reason;
            leaders.delete(identity);
            resolve();
          });
        }),
      ...options,
    });
  }

  async stop(): Promise<void> {
    this.#controller.abort();
    await this.done;
  }
}

test('the first candidate leads, with a lease as written by client-go', async () => {
  const world = new World();
  world.join('a');
  await settle();
  assert.deepEqual([...world.leaders], ['a']);
  const acquired = { ...world.spec };
  assert.deepEqual(acquired, {
    holderIdentity: 'a',
    leaseDurationSeconds: 15,
    acquireTime: '2030-03-17T17:46:40.000000Z',
    renewTime: '2030-03-17T17:46:40.000000Z',
    leaseTransitions: 0,
  });
  await world.clock.advance(6000);
  assert.deepEqual(world.spec, { ...acquired, renewTime: '2030-03-17T17:46:46.000000Z' });
  await world.stopAll();
});

test('releases the lease after lead has ended, and the next candidate acquires it soon', async () => {
  const world = new World();
  const a = world.join('a');
  await settle();
  world.join('b');
  await world.clock.advance(60_000);
  assert.deepEqual(world.history, ['a']);
  await a.stop();
  assert.equal(world.spec?.holderIdentity, undefined);
  await world.clock.advance(4000);
  assert.deepEqual([...world.leaders], ['b']);
  assert.equal(world.spec?.leaseTransitions, 1);
  await world.stopAll();
});

test('keeps the lease until lead has ended', async () => {
  const world = new World();
  let finish: () => void = () => {};
  const a = world.join('a', { lead: () => new Promise((resolve) => (finish = resolve)) });
  await settle();
  world.join('b');
  const stopped = a.stop();
  await world.clock.advance(60_000);
  assert.deepEqual(world.history, []);
  finish();
  await stopped;
  await world.clock.advance(4000);
  assert.deepEqual(world.history, ['b']);
  await world.stopAll();
});

for (const state of ['refused', 'held', 'deaf'] as const) {
  test(`a leader whose link is ${state} stops before another starts, and follows later`, async () => {
    const world = new World();
    const a = world.join('a');
    await settle();
    world.join('b');
    await world.clock.advance(10_000);
    a.link.state = state;
    await world.clock.advance(7900);
    assert.deepEqual([...world.leaders], ['a']);
    await world.clock.advance(2200);
    assert.deepEqual([...world.leaders], []);
    assert.ok(a.lostBy instanceof LeadershipLostError);
    await world.clock.advance(20_000);
    assert.deepEqual([...world.leaders], ['b']);
    a.link.state = 'up';
    await world.clock.advance(60_000);
    assert.deepEqual(world.history, ['a', 'b']);
    await world.stopAll();
  });
}

test('measures time from when a renewal was sent, not from its response', async () => {
  const world = new World();
  let responseMs = 0;
  let trip = 0;
  const latency = { ms: () => (trip++ % 2 === 0 ? 0 : responseMs) };
  const a = world.join('a', { latency });
  await world.clock.advance(1000);
  responseMs = 7000;
  await world.clock.advance(8500);
  a.link.state = 'refused';
  await world.clock.advance(2400);
  assert.deepEqual([...world.leaders], ['a'], 'sent after two seconds, response after nine');
  await world.clock.advance(200);
  assert.deepEqual([...world.leaders], [], 'ten seconds after it was sent');
  await world.stopAll();
});

test('ignores wrong clocks of other candidates and changes of its own clock', async () => {
  const world = new World();
  world.join('a', { skewMs: -3_600_000 });
  await settle();
  world.join('b', { skewMs: 3_600_000 });
  for (let i = 0; i < 10; i++) {
    world.clock.setWallClockBy(i % 2 === 0 ? 600_000 : -600_000);
    await world.clock.advance(5000);
  }
  assert.deepEqual(world.history, ['a']);
  await world.stopAll();
});

test('gives up a lease that a user has assigned to another holder', async () => {
  const world = new World();
  const a = world.join('a');
  await settle();
  world.api.patch(LEASES, 'kube-system/controllers', { spec: { holderIdentity: 'operator' } });
  await world.clock.advance(2000);
  assert.deepEqual([...world.leaders], []);
  assert.match(String(a.lostBy), /held by "operator"/);
  await world.clock.advance(20_000);
  assert.deepEqual(world.history, ['a', 'a'], 'and acquires it again when it is not renewed');
  await world.stopAll();
});

test('a deleted lease does not let a follower lead while the leader continues', async () => {
  const world = new World();
  world.join('a');
  await settle();
  world.join('b', { retryPeriodMs: 300 });
  await world.clock.advance(5000);
  world.api.remove(LEASES, LEASE);
  await world.clock.advance(30_000);
  assert.deepEqual(world.history, ['a']);
  await world.stopAll();
});

test('ends when lead ends, throws what it throws, and releases the lease', async () => {
  for (const [lead, want] of [
    [async () => {}, undefined],
    [() => Promise.reject(new Error('boom')), /boom/],
  ] as const) {
    const world = new World();
    const { done } = world.join('a', { lead });
    if (want === undefined) await done;
    else await assert.rejects(done, want);
    assert.equal(world.spec?.holderIdentity, undefined);
    assert.equal(world.clock.pendingTimers, 0, 'no timer is left');
  }
});

type Step =
  | { do: 'advance' | 'leap'; ms: number }
  | { do: 'link'; who: number; state: LinkState }
  | { do: 'cut the leader'; state: LinkState; ms: number }
  | { do: 'replace'; who: number };

const linkState = fc.constantFrom<LinkState>('refused', 'held', 'deaf');
const who = fc.integer({ min: 0, max: 1 });
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 9000 }) }),
  fc.record({ do: fc.constant('cut the leader' as const), state: linkState, ms: fc.integer({ min: 1, max: 40_000 }) }),
  fc.record({ do: fc.constant('link' as const), who, state: fc.oneof(linkState, fc.constant<LinkState>('up')) }),
  fc.record({ do: fc.constant('replace' as const), who }),
  fc.record({ do: fc.constant('leap' as const), ms: fc.integer({ min: -100_000, max: 100_000 }) }),
);
const anyClock = fc.record({
  rate: fc.double({ min: 0.9, max: 1.1, noNaN: true }),
  skewMs: fc.integer({ min: -9999, max: 9999 }),
});
const anyLatencies = fc.array(
  fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 0, max: 300 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 9000 }) },
  ),
  { minLength: 1, maxLength: 9 },
);

test('two candidates never lead at the same time, whatever happens to network and clocks', async () => {
  const script = fc.array(anyStep, { minLength: 10, maxLength: 40 });
  let changes = 0;
  await fc.assert(
    fc.asyncProperty(
      script,
      fc.tuple(anyClock, anyClock),
      fc.tuple(anyLatencies, anyLatencies),
      async (steps, clocks, delays) => {
        const world = new World();
        let calm = false;
        const start = (index: number, name: string): Candidate => {
          let turn = 0;
          const ms = () => (calm ? 1 : delays[index]![turn++ % delays[index]!.length]!);
          return world.join(name, { ...clocks[index], latency: { ms } });
        };
        const running = [start(0, 'a0'), start(1, 'b0')];
        let replaced = 0;
        const perform = async (step: Step): Promise<void> => {
          switch (step.do) {
            case 'advance':
              return await world.clock.advance(step.ms);
            case 'leap':
              return world.clock.setWallClockBy(step.ms);
            case 'link':
              running[step.who]!.link.state = step.state;
              return;
            case 'cut the leader': {
              const [leader = 'a0'] = world.leaders;
              const cut = running[leader.startsWith('a') ? 0 : 1]!;
              const other = running[leader.startsWith('a') ? 1 : 0]!;
              cut.link.state = step.state;
              other.link.state = 'up';
              await world.clock.advance(step.ms);
              cut.link.state = 'up';
              return;
            }
            case 'replace':
              void running[step.who]!.stop();
              running[step.who] = start(step.who, `${'ab'[step.who]}${++replaced}`);
          }
        };
        // Two leaders at the same time are detected when the second one starts.
        for (const step of steps) await perform(step);
        calm = true;
        for (const { link } of running) link.state = 'up';
        await world.clock.advance(90_000);
        assert.equal(world.leaders.size, 1, 'after everything has recovered, one candidate leads');
        changes += world.history.length;
        await world.stopAll();
      },
    ),
    { numRuns: 60 },
  );
  assert.ok(changes > 150, `the schedules must cause changes of leadership: ${changes}`);
});
