/** Tests with real processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createPluginHost, type PluginCall, type PluginOutcome } from '#client/credentials/plugin-process.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { systemClock } from '#lib/clock.ts';

const dir = mkdtempSync(join(tmpdir(), 'selfsame-plugin-'));
after(() => rmSync(dir, { recursive: true, force: true }));

function script(name: string, text: string, mode = 0o755): string {
  const path = join(dir, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode });
  return path;
}

const aCall = (command: string, overrides: Partial<PluginCall> = {}): PluginCall => ({
  ...{ command, args: [], env: {}, interactive: false, timeoutMs: 60_000, maxOutputBytes: 1000 },
  ...overrides,
});
const env = { PATH: `${dir}:/usr/bin:/bin`, FIRST: '1', SECOND: '2', ABSENT: undefined };
const host = createPluginHost({ env, hasTerminal: false, clock: systemClock });
const signal = new AbortController().signal;

const cases: Record<string, { call: PluginCall; want: PluginOutcome }> = {
  'passes arguments and variables, and no input': {
    call: aCall(script('show', 'echo "$FIRST $SECOND $1 $2"; cat'), { args: ['a b', '$c'], env: { SECOND: 'two' } }),
    want: { kind: 'exited', code: 0, stdout: '1 two a b $c\n' },
  },
  'finds a name in PATH of this process, not in that of the plugin': {
    call: aCall((script('named', '/bin/echo found'), 'named'), { env: { PATH: '/nowhere' } }),
    want: { kind: 'exited', code: 0, stdout: 'found\n' },
  },
  'returns the exit code': {
    call: aCall(script('fail', 'exit 3')),
    want: { kind: 'exited', code: 3, stdout: '' },
  },
  'reports a signal': { call: aCall(script('kill', 'kill -9 $$')), want: { kind: 'killed', signal: 'SIGKILL' } },
  'reports a missing name': { call: aCall('selfsame-no-such-plugin'), want: { kind: 'not-found' } },
  'reports a missing path': { call: aCall(join(dir, 'missing')), want: { kind: 'not-found' } },
  'reports a file that is not executable': {
    call: aCall(script('plain', 'exit 0', 0o644)),
    want: { kind: 'cannot-start', why: 'it is not executable' },
  },
  'does not find a file that is not executable in PATH': {
    call: aCall((script('plain-named', 'exit 0', 0o644), 'plain-named')),
    want: { kind: 'not-found' },
  },
  'does not quote arguments that cannot be passed': {
    call: aCall(script('never', 'exit 0'), { args: ['secret\0'] }),
    want: { kind: 'cannot-start', why: 'its arguments or variables are not valid' },
  },
  'ends a program that prints too much': {
    call: aCall(script('chatty', 'exec yes')),
    want: { kind: 'too-long' },
  },
};
for (const [sentence, { call, want }] of Object.entries(cases)) {
  test(`plugin process: ${sentence}`, async () => {
    assert.deepEqual(await host.run(call, { signal }), want);
  });
}

test('ends a program that takes too long, although its child keeps the output open', async () => {
  const clock = new FakeClock();
  const slow = createPluginHost({ env, hasTerminal: false, clock });
  const running = slow.run(aCall(script('slow', 'sleep 2 & exec sleep 600')), { signal });
  await clock.advance(60_000);
  assert.deepEqual(await running, { kind: 'timed-out' });
  assert.equal(clock.pendingTimers, 0);
});

test('ends a program when it is aborted', async () => {
  const stopping = new AbortController();
  const running = host.run(aCall(script('waiting', 'exec sleep 600')), stopping);
  stopping.abort(new Error('closed'));
  await assert.rejects(running, /closed/);
  await assert.rejects(host.run(aCall('waiting'), stopping), /closed/);
});
