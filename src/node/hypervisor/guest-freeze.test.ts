import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { GuestFreeze, type FreezeRecord } from './guest-freeze.ts';
import { GuestAgentError } from './guest-lines.ts';

const MINUTE = 60_000;

/** A guest with an agent that does as it is told, or fails at a command as often as it is told. */
function scene(left?: FreezeRecord) {
  const clock = new FakeClock();
  const said: string[] = [];
  const failures = new Map<string, Error[]>();
  const held = new Map<string, Promise<void>>();
  const disk: { frozen: FreezeRecord | undefined } = { frozen: left };
  const freeze = new GuestFreeze({
    clock,
    log: silentLog,
    ask: async ({ execute }) => {
      said.push(execute);
      // What was about to be frozen is on disk before.
      if (execute === 'guest-fsfreeze-freeze') assert.ok(disk.frozen !== undefined);
      await held.get(execute);
      const failure = failures.get(execute)?.shift();
      if (failure !== undefined) throw failure;
      return 1;
    },
    record: () => disk.frozen,
    write: async (frozen) => void (disk.frozen = frozen),
    hasEnded: () => false,
  });
  /** Answers of that command wait until they are let go. */
  const holding = (execute: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.set(execute, promise);
    return resolve;
  };
  return { clock, said, failures, disk, freeze, holding };
}
const late = () => new GuestAgentError('NoAnswer', 'too late');

test('a guest is frozen, and thawed when it is asked to be', async () => {
  const { freeze, said, disk, clock } = scene();
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  assert.equal(freeze.untilMs, clock.now() + MINUTE);
  await freeze.thaw();
  assert.deepEqual(said, ['guest-ping', 'guest-fsfreeze-freeze', 'guest-fsfreeze-thaw']);
  assert.equal(disk.frozen, undefined);
});

test('it thaws by itself when its time is over, and tries until it is heard', async () => {
  const { freeze, said, disk, clock, failures } = scene();
  failures.set('guest-fsfreeze-thaw', [late(), late()]);
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  await clock.advance(MINUTE - 1);
  assert.equal(said.length, 2);
  for (let i = 0; i < 3; i++) {
    await clock.advance(5000);
  }
  assert.deepEqual(said.slice(2), Array(3).fill('guest-fsfreeze-thaw'));
  assert.equal(disk.frozen, undefined);
});

test('where nobody answers, nothing is written down and nothing else is said', async () => {
  const { freeze, said, disk, failures } = scene();
  failures.set('guest-ping', [new GuestAgentError('NotConnected', 'nobody')]);
  await assert.rejects(freeze.freeze({ timeoutMs: MINUTE, why: 'snapshot' }), /nobody/);
  assert.deepEqual([said, disk.frozen], [['guest-ping'], undefined]);
});

test('a freeze that is not answered in time is thawed: it may have happened', async () => {
  const { freeze, said, disk, failures } = scene();
  failures.set('guest-fsfreeze-freeze', [late()]);
  await assert.rejects(freeze.freeze({ timeoutMs: MINUTE, why: 'snapshot' }), /too late/);
  assert.deepEqual(said.at(-1), 'guest-fsfreeze-thaw');
  assert.equal(disk.frozen, undefined);
});

test('asked again, only its time is another', async () => {
  const { freeze, said, clock } = scene();
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  await freeze.freeze({ timeoutMs: 10 * MINUTE, why: 'asked' });
  await clock.advance(9 * MINUTE);
  assert.equal(said.filter((word) => word === 'guest-fsfreeze-freeze').length, 1);
  assert.ok(!said.includes('guest-fsfreeze-thaw'));
});

test('what is to be frozen for longer while its clock thaws it is frozen again', async () => {
  const { freeze, said, disk, clock, holding } = scene();
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  const letGo = holding('guest-fsfreeze-thaw');
  await clock.advance(MINUTE);
  assert.equal(said.at(-1), 'guest-fsfreeze-thaw');
  const again = freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  letGo();
  await again;
  assert.equal(said.at(-1), 'guest-fsfreeze-freeze');
  assert.deepEqual(disk.frozen, { untilMs: clock.now() + MINUTE, why: 'asked' });
});

test('a guest that begins anew is not frozen', async () => {
  const { freeze, disk } = scene({ untilMs: 1, why: 'asked' });
  await freeze.forget();
  assert.equal(disk.frozen, undefined);
});

const found: Record<string, { left: (now: number) => FreezeRecord; thaws: 'at once' | 'later' }> = {
  'what an agent of the node that died had frozen for a snapshot is thawed at once': {
    left: (now) => ({ untilMs: now + MINUTE, why: 'snapshot' }),
    thaws: 'at once',
  },
  'what is over is thawed at once': { left: (now) => ({ untilMs: now, why: 'asked' }), thaws: 'at once' },
  'what somebody asked for lasts as long as it was to last': {
    left: (now) => ({ untilMs: now + MINUTE, why: 'asked' }),
    thaws: 'later',
  },
};
for (const [name, { left, thaws }] of Object.entries(found)) {
  test(name, async () => {
    const { freeze, said, clock, disk } = scene(left(new FakeClock().now()));
    await freeze.settle();
    assert.deepEqual(said, thaws === 'at once' ? ['guest-fsfreeze-thaw'] : []);
    await clock.advance(MINUTE);
    assert.deepEqual(said, ['guest-fsfreeze-thaw']);
    assert.equal(disk.frozen, undefined);
  });
}
