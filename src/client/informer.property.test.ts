/** Random histories and failures: compares what a listener sees with the history of the server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import type { Break } from '#client/testing/fake-stream.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import { silentLog } from '#lib/log.ts';

type Step =
  | { do: 'put' | 'remove'; name: string }
  | { do: 'break'; how: Break }
  | { do: 'link'; state: 'up' | 'refused' }
  | { do: 'repeat'; count: number }
  | { do: 'advance'; ms: number }
  | { do: 'bookmark' | 'old bookmark' | 'restart' | 'settle' | 'fail' | 'compact' };

const name = fc.constantFrom('a', 'b', 'c');
const steadySteps: fc.Arbitrary<Step>[] = [
  fc.record({ do: fc.constant('put' as const), name }),
  fc.record({ do: fc.constant('put' as const), name }),
  fc.record({ do: fc.constant('remove' as const), name }),
  fc.record({
    do: fc.constant('break' as const),
    how: fc.constantFrom<Break>('reset', 'inside a line', 'end', 'silence'),
  }),
  fc.record({ do: fc.constant('link' as const), state: fc.constantFrom('up' as const, 'refused' as const) }),
  fc.record({ do: fc.constant('repeat' as const), count: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 2000 }) }),
  fc.record({ do: fc.constantFrom('bookmark', 'old bookmark', 'restart', 'settle', 'settle', 'fail') }),
];
const compaction = fc.record({ do: fc.constant('compact' as const) });

async function run(steps: readonly Step[]) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [GADGETS]);
  const informer = new Informer({ reader: link.client, type: GADGETS, clock, log: silentLog, pageSize: 2 });
  // The watch starts from a revision: another test covers the order of a watch from 0.
  api.put(GADGETS, aGadget('first'));
  const seen = new Map<string, string[]>();
  informer.onChange((key, { old, new: next }) => {
    const states = seen.get(key) ?? [];
    assert.equal(old?.metadata.resourceVersion, lastState(states), 'old is the state that was seen before');
    assert.deepEqual(informer.get(key), next, 'the cache has the new state already');
    states.push(next === undefined ? 'gone' : next.metadata.resourceVersion);
    seen.set(key, states);
  });
  const controller = new AbortController();
  const stopped = informer.start({ signal: controller.signal });
  await informer.waitForSync();
  const listedAt = api.revision;
  for (const step of steps) await perform(step, { api, clock, link });
  // Everything broken recovers; a silent watch is given up after at most eleven minutes.
  link.state = 'up';
  link.failures.length = 0;
  await clock.advance(900_000);
  const result = { seen, states: expected(api, listedAt), final: api.all(GADGETS), cached: informer.list() };
  controller.abort();
  await stopped;
  assert.equal(api.watchers, 0);
  return result;
}

async function perform(step: Step, world: { api: FakeApi; clock: FakeClock; link: FakeLink }): Promise<void> {
  const { api, clock, link } = world;
  switch (step.do) {
    case 'put':
      api.put(GADGETS, aGadget(step.name, { spec: { size: api.revision } }));
      break;
    case 'remove':
      if (api.peek(GADGETS, `default/${step.name}`)) api.remove(GADGETS, { namespace: 'default', name: step.name });
      break;
    case 'break':
      api.breakWatches(step.how);
      break;
    case 'link':
      link.state = step.state;
      break;
    case 'repeat':
      api.repeat(step.count);
      break;
    case 'advance':
      await clock.advance(step.ms);
      break;
    case 'bookmark':
      api.bookmark();
      break;
    case 'old bookmark':
      api.bookmark(1);
      break;
    case 'restart':
      api.restart();
      break;
    case 'fail':
      link.failures.push(new Error('read ECONNRESET'));
      break;
    case 'compact':
      api.compact();
      break;
    case 'settle':
      await settle();
      break;
  }
}

/** Returns, for each key, all states since the list, which shows the last state before it. */
function expected(api: FakeApi, listedAt: number): Map<string, string[]> {
  const states = new Map<string, string[]>();
  for (const { key, type, revision } of api.history) {
    const state = type === 'DELETED' ? 'gone' : String(revision);
    const before = revision <= listedAt;
    if (before && type === 'DELETED') states.delete(key);
    else states.set(key, before ? [state] : [...(states.get(key) ?? []), state]);
  }
  return states;
}

function lastState(states: readonly string[]): string | undefined {
  const last = states.at(-1);
  return last === 'gone' ? undefined : last;
}

const byKey = (states: Map<string, string[]>) => Object.fromEntries([...states].sort(([a], [b]) => (a < b ? -1 : 1)));
const versions = (objects: readonly { metadata: { name: string; resourceVersion: string } }[]) =>
  objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort();

test('shows each state exactly once and in order despite failures, while the server keeps its history', async () => {
  const steps = fc.array(fc.oneof(...steadySteps), { minLength: 1, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      const { seen, states, cached, final } = await run(script);
      assert.deepEqual(byKey(seen), byKey(states));
      assert.deepEqual(versions(cached), versions(final));
    }),
    { numRuns: 150 },
  );
});

test('may skip states after compaction, but repeats and reorders none and reaches the final state', async () => {
  const steps = fc.array(fc.oneof(...steadySteps, compaction), { minLength: 1, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      const { seen, states, cached, final } = await run(script);
      for (const [key, list] of seen) assertSubsequence(list, states.get(key) ?? [], key);
      assert.deepEqual(versions(cached), versions(final));
    }),
    { numRuns: 150 },
  );
});

function assertSubsequence(part: readonly string[], whole: readonly string[], key: string): void {
  let at = 0;
  for (const state of part) {
    const found = whole.indexOf(state, at);
    assert.ok(found >= 0, `${key}: ${part.join(' ')} is not in order within ${whole.join(' ')}`);
    at = found + 1;
  }
}
