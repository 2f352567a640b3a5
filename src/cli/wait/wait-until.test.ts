import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import { waitUntil, type WaitState } from '#cli/wait/wait-until.ts';
import { ApiError, forbidden } from '#kube/api-error.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { StatusOutput } from '#lib/terminal/status-output.ts';

/** Waits with a clock that advances at each sleep. The last reading stays. */
async function wait(...readings: (WaitState | Error)[]) {
  let [reads, now] = [0, 0];
  const shown: string[] = [];
  const clock = {
    now: () => now,
    elapsed: () => now,
    after(ms: number, fn: () => void) {
      now += ms;
      setImmediate(fn);
      return () => {};
    },
  };
  const read = async () => {
    const reading = readings[Math.min(reads++, readings.length - 1)]!;
    if (reading instanceof Error) throw reading;
    return reading;
  };
  const stream = { write: (line: string) => void shown.push(line.trimEnd()) };
  const status = new StatusOutput(stream, { clock, env: {} });
  const waiting = { problem: 'Cannot confirm it', advice: 'look again', limitMs: 90_000, read };
  return { shown, end: await waitUntil(waiting, status).catch(String) };
}

suite('waiting', () => {
  test('shows each state once and returns the result', async () => {
    const starting = { waiting: 'VM db: Starting' };
    const { shown, end } = await wait({ waiting: 'VM db: Stopped' }, starting, starting, { done: 'running' });
    assert.deepEqual(shown, ['VM db: Stopped', 'VM db: Starting']);
    assert.equal(end, 'running');
  });

  test('ends with a failure', async () => {
    assert.equal((await wait({ waiting: 'x' }, { failed: 'Cannot do it' })).end, 'CommandError: Cannot do it');
  });

  test('ends at the limit, with the last state', async () => {
    const { shown, end } = await wait({ waiting: 'VM db: Starting' });
    assert.equal(end, 'WaitLimitError: Cannot confirm it: after 1m30s, the state is "VM db: Starting"; look again');
    assert.deepEqual(shown, ['VM db: Starting']);
  });

  test('tolerates a server that restarts', async () => {
    const away = new CommandError('Unable to connect to the server: refused');
    const { shown, end } = await wait(away, new ApiError(503, 'ServiceUnavailable', 'not yet'), { done: 'running' });
    assert.deepEqual(shown, ['Unable to connect to the server: refused', 'not yet']);
    assert.equal(end, 'running');
  });

  test('says at Ctrl-C that the work continues', async () => {
    for (const isTTY of [false, true]) {
      let [shown, pending] = ['', 0];
      let interrupt = () => {};
      const clock = {
        now: () => 0,
        elapsed: () => 0,
        after: (_: number, fn: () => void) => (setImmediate(fn), () => {}),
      };
      const onInterrupt = (restore: () => void) => {
        interrupt = restore;
        pending++;
        return () => void pending--;
      };
      const status = new StatusOutput(
        { isTTY, columns: 80, write: (text: string) => (shown += text) },
        { clock, env: {}, onInterrupt },
      );
      let reads = 0;
      const read = async () => {
        if (reads++ === 1) interrupt();
        return reads > 2 ? { done: 'running' } : { waiting: 'VM db: Starting' };
      };
      await waitUntil({ problem: 'Cannot confirm it', advice: 'it continues', limitMs: 90_000, read }, status);
      assert.match(shown, /VM db: Starting\n+No longer waiting: it continues\n/);
      assert.equal(pending, 0, 'a signal after the wait has no effect');
    }
  });

  test('shows progress of one phase at intervals, and the last state', async () => {
    const progress = (percent: number) => ({ waiting: { plain: `${percent}%`, phase: 'Copying' } });
    const all = Array.from({ length: 13 }, (_, i) => progress(i));
    const { shown } = await wait({ waiting: 'Pending' }, ...all, { done: 'running', last: '100%' });
    assert.deepEqual(shown, ['Pending', '0%', '10%', '100%']);
  });

  test('ends if the user may not read the object', async () => {
    const refused = forbidden({ group: 'kubevirt.io', plural: 'virtualmachines' }, 'db', 'no');
    assert.match((await wait(refused, { done: 'running' })).end, /^ApiError: .*forbidden/);
  });
});

test('the time limit has a default, and is refused without --wait', () => {
  const { timeoutMs } = waitFlags('it ends', '5m');
  assert.equal(waitLimitMs({ wait: false, timeoutMs: undefined }, '5m'), undefined);
  assert.equal(waitLimitMs({ wait: true, timeoutMs: undefined }, '5m'), 300_000);
  assert.equal(waitLimitMs({ wait: true, timeoutMs: timeoutMs.parse('1h30m') }, '5m'), 5_400_000);
  assert.throws(() => waitLimitMs({ wait: false, timeoutMs: 1 }, '5m'), /the command does not wait; add --wait$/);
  for (const wrong of ['0', '-5m', 'soon', '5', '']) assert.throws(() => timeoutMs.parse(wrong), /must be a duration/);
});
