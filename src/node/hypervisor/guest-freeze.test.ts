import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { GuestFreeze, type FreezeRecord } from '#node/hypervisor/guest-freeze.ts';
import { GuestAgentError } from '#node/hypervisor/guest-access.ts';

const MINUTE = 60_000;

/** A guest whose agent obeys every command, except for those in `failures`, which fail as often as listed there. */
function scene(left?: FreezeRecord) {
  const clock = new FakeClock();
  const commands: string[] = [];
  const failures = new Map<string, Error[]>();
  const held = new Map<string, Promise<void>>();
  const disk: { frozen: FreezeRecord | undefined } = { frozen: left };
  const freeze = new GuestFreeze({
    clock,
    log: silentLog,
    askAgent: async ({ execute }) => {
      commands.push(execute);
      // The record must be on disk before the guest is frozen.
      if (execute === 'guest-fsfreeze-freeze') assert.ok(disk.frozen !== undefined);
      await held.get(execute);
      const failure = failures.get(execute)?.shift();
      if (failure !== undefined) throw failure;
      return 1;
    },
    readRecord: () => disk.frozen,
    writeRecord: async (frozen) => void (disk.frozen = frozen),
    hasEnded: () => false,
  });
  /** Delays the answers to a command until the returned function is called. */
  const delayAnswers = (execute: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.set(execute, promise);
    return resolve;
  };
  return { clock, commands, failures, disk, freeze, delayAnswers };
}
const late = () => new GuestAgentError('NoAnswer', 'too late');

test('freezes a guest and thaws it on request', async () => {
  const { freeze, commands, disk, clock } = scene();
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  assert.equal(freeze.untilMs, clock.now() + MINUTE);
  await freeze.thaw();
  assert.deepEqual(commands, ['guest-ping', 'guest-fsfreeze-freeze', 'guest-fsfreeze-thaw']);
  assert.equal(disk.frozen, undefined);
});

test('thaws after the timeout and retries until the agent answers', async () => {
  const { freeze, commands, disk, clock, failures } = scene();
  failures.set('guest-fsfreeze-thaw', [late(), late()]);
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  await clock.advance(MINUTE - 1);
  assert.equal(commands.length, 2);
  for (let i = 0; i < 3; i++) {
    await clock.advance(5000);
  }
  assert.deepEqual(commands.slice(2), Array(3).fill('guest-fsfreeze-thaw'));
  assert.equal(disk.frozen, undefined);
});

test('records nothing and sends no further command if the agent does not answer', async () => {
  const { freeze, commands, disk, failures } = scene();
  failures.set('guest-ping', [new GuestAgentError('NotConnected', 'no agent')]);
  await assert.rejects(freeze.freeze({ timeoutMs: MINUTE, why: 'snapshot' }), /no agent/);
  assert.deepEqual([commands, disk.frozen], [['guest-ping'], undefined]);
});

test('thaws after a freeze without an answer, because the guest may be frozen', async () => {
  const { freeze, commands, disk, failures } = scene();
  failures.set('guest-fsfreeze-freeze', [late()]);
  await assert.rejects(freeze.freeze({ timeoutMs: MINUTE, why: 'snapshot' }), /too late/);
  assert.deepEqual(commands.at(-1), 'guest-fsfreeze-thaw');
  assert.equal(disk.frozen, undefined);
});

test('only changes the timeout if the guest is already frozen', async () => {
  const { freeze, commands, clock } = scene();
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  await freeze.freeze({ timeoutMs: 10 * MINUTE, why: 'asked' });
  await clock.advance(9 * MINUTE);
  assert.equal(commands.filter((word) => word === 'guest-fsfreeze-freeze').length, 1);
  assert.ok(!commands.includes('guest-fsfreeze-thaw'));
});

test('freezes again if a longer freeze is requested during the thaw', async () => {
  const { freeze, commands, disk, clock, delayAnswers } = scene();
  await freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  const release = delayAnswers('guest-fsfreeze-thaw');
  await clock.advance(MINUTE);
  assert.equal(commands.at(-1), 'guest-fsfreeze-thaw');
  const again = freeze.freeze({ timeoutMs: MINUTE, why: 'asked' });
  release();
  await again;
  assert.equal(commands.at(-1), 'guest-fsfreeze-freeze');
  assert.deepEqual(disk.frozen, { untilMs: clock.now() + MINUTE, why: 'asked' });
});

test('a restarted guest is not frozen', async () => {
  const { freeze, disk } = scene({ untilMs: 1, why: 'asked' });
  await freeze.clearRecord();
  assert.equal(disk.frozen, undefined);
});

const leftFreezes: Record<string, { left: (now: number) => FreezeRecord; thaws: 'at once' | 'later' }> = {
  'thaws at once if a node agent died during a snapshot': {
    left: (now) => ({ untilMs: now + MINUTE, why: 'snapshot' }),
    thaws: 'at once',
  },
  'thaws at once if the timeout has passed': { left: (now) => ({ untilMs: now, why: 'asked' }), thaws: 'at once' },
  'keeps a freeze that a user requested until its timeout': {
    left: (now) => ({ untilMs: now + MINUTE, why: 'asked' }),
    thaws: 'later',
  },
};
for (const [name, { left, thaws }] of Object.entries(leftFreezes)) {
  test(name, async () => {
    const { freeze, commands, clock, disk } = scene(left(new FakeClock().now()));
    await freeze.reconcile();
    assert.deepEqual(commands, thaws === 'at once' ? ['guest-fsfreeze-thaw'] : []);
    await clock.advance(MINUTE);
    assert.deepEqual(commands, ['guest-fsfreeze-thaw']);
    assert.equal(disk.frozen, undefined);
  });
}
