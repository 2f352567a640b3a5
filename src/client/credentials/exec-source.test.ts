import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CredentialError } from '#client/credentials/credential-source.ts';
import type { ExecPlugin } from '#client/credentials/exec-plugin.ts';
import { ExecSource } from '#client/credentials/exec-source.ts';
import type { PluginCall, PluginHost, PluginOutcome } from '#client/credentials/plugin-process.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';

const V1 = 'client.authentication.k8s.io/v1';
const SECRET = 'do-not-print';

function aPlugin(overrides: Partial<ExecPlugin> = {}): ExecPlugin {
  return {
    apiVersion: V1,
    command: 'login',
    args: [SECRET],
    env: { PASSWORD: SECRET },
    interactiveMode: 'IfAvailable',
    installHint: undefined,
    cluster: undefined,
    ...overrides,
  };
}

/** A host whose plugin prints token-1, token-2 and so on, valid for `lifetimeMs`. */
class FakeHost implements PluginHost {
  readonly clock = new FakeClock();
  readonly calls: PluginCall[] = [];
  readonly signals: AbortSignal[] = [];
  hasTerminal = false;
  lifetimeMs: number | undefined;
  /** Used instead of a token. */
  outcome: PluginOutcome | undefined;
  /** Delays the end of the next runs. */
  gate: Promise<void> | undefined;

  async run(call: PluginCall, { signal }: { signal: AbortSignal }): Promise<PluginOutcome> {
    this.calls.push(call);
    this.signals.push(signal);
    const number = this.calls.length;
    if (this.gate !== undefined) await this.gate;
    signal.throwIfAborted();
    if (this.outcome !== undefined) return this.outcome;
    const expirationTimestamp =
      this.lifetimeMs === undefined ? undefined : new Date(this.clock.now() + this.lifetimeMs).toISOString();
    const status = { token: `token-${number}`, expirationTimestamp };
    return { kind: 'exited', code: 0, stdout: JSON.stringify({ kind: 'ExecCredential', apiVersion: V1, status }) };
  }
}

const tokenOf = async (source: ExecSource) => (await source.current()).token;

test('runs the plugin once for concurrent requests, and keeps a credential without an expiry', async () => {
  const host = new FakeHost();
  const source = new ExecSource(aPlugin(), host);
  assert.equal(host.calls.length, 0);
  const tokens = await Promise.all([tokenOf(source), tokenOf(source), tokenOf(source)]);
  assert.deepEqual(tokens, ['token-1', 'token-1', 'token-1']);
  await host.clock.advance(365 * 24 * 3600_000);
  assert.equal(await tokenOf(source), 'token-1');
});

const renewals: Record<string, { lifetimeMs: number; keptMs: number; renewedMs: number }> = {
  'a minute before it expires': { lifetimeMs: 3600_000, keptMs: 3539_000, renewedMs: 3540_000 },
  'in the last fifth of a short lifetime': { lifetimeMs: 10_000, keptMs: 7999, renewedMs: 8000 },
};
for (const [sentence, { lifetimeMs, keptMs, renewedMs }] of Object.entries(renewals)) {
  test(`renews a credential ${sentence}`, async () => {
    const host = new FakeHost();
    host.lifetimeMs = lifetimeMs;
    const source = new ExecSource(aPlugin(), host);
    await tokenOf(source);
    await host.clock.advance(keptMs);
    assert.equal(await tokenOf(source), 'token-1');
    await host.clock.advance(renewedMs - keptMs);
    assert.equal(await tokenOf(source), 'token-2');
  });
}

test('uses a credential to its end if the plugin cannot renew it, and tries again every ten seconds', async () => {
  const host = new FakeHost();
  host.lifetimeMs = 3600_000;
  const source = new ExecSource(aPlugin(), host);
  await tokenOf(source);
  host.outcome = { kind: 'exited', code: 1, stdout: '' };
  await host.clock.advance(3540_000);
  assert.equal(await tokenOf(source), 'token-1');
  assert.equal(await tokenOf(source), 'token-1');
  assert.equal(host.calls.length, 2);
  await host.clock.advance(10_000);
  assert.equal(await tokenOf(source), 'token-1');
  assert.equal(host.calls.length, 3);
  await host.clock.advance(50_000);
  await assert.rejects(tokenOf(source), CredentialError);
  host.outcome = undefined;
  assert.equal(await tokenOf(source), 'token-5');
});

test('runs the plugin once after several requests were refused with the same credential', async () => {
  const host = new FakeHost();
  const source = new ExecSource(aPlugin(), host);
  const refused = await source.current();
  source.discard(refused);
  assert.equal(await tokenOf(source), 'token-2');
  source.discard(refused);
  assert.equal(await tokenOf(source), 'token-2');
});

test('stops the plugin when all waiting requests are aborted', async () => {
  const host = new FakeHost();
  const open = Promise.withResolvers<void>();
  host.gate = open.promise;
  const source = new ExecSource(aPlugin(), host);
  const [first, second] = [new AbortController(), new AbortController()];
  const waiting = [first, second].map(({ signal }) => assert.rejects(source.current({ signal }), /left/));
  first.abort(new Error('left'));
  await waiting[0];
  assert.equal(host.signals[0]?.aborted, false);
  second.abort(new Error('left'));
  await waiting[1];
  assert.equal(host.signals[0]?.aborted, true);
  open.resolve();
  assert.equal(await tokenOf(source), 'token-2');
});

const terminals: Record<string, { mode: ExecPlugin['interactiveMode']; hasTerminal: boolean; want: boolean }> = {
  'Never with a terminal': { mode: 'Never', hasTerminal: true, want: false },
  'IfAvailable with a terminal': { mode: 'IfAvailable', hasTerminal: true, want: true },
  'IfAvailable without a terminal': { mode: 'IfAvailable', hasTerminal: false, want: false },
  'Always with a terminal': { mode: 'Always', hasTerminal: true, want: true },
};
for (const [sentence, { mode, hasTerminal, want }] of Object.entries(terminals)) {
  test(`interactive mode: ${sentence}`, async () => {
    const host = new FakeHost();
    host.hasTerminal = hasTerminal;
    await new ExecSource(aPlugin({ interactiveMode: mode }), host).current();
    const [call] = host.calls;
    assert.equal(call?.interactive, want);
    assert.equal(JSON.parse(call?.env['KUBERNETES_EXEC_INFO'] ?? '').spec.interactive, want);
    assert.equal(call?.env['PASSWORD'], SECRET);
  });
}

const failures: Record<string, { outcome?: PluginOutcome; plugin?: Partial<ExecPlugin>; want: RegExp }> = {
  'Always without a terminal': { plugin: { interactiveMode: 'Always' }, want: /it needs a terminal/ },
  'a missing program': { outcome: { kind: 'not-found' }, want: /the program does not exist; install it/ },
  'a missing program with a hint': {
    outcome: { kind: 'not-found' },
    plugin: { installHint: 'get it from example.org\n' },
    want: /the program does not exist; get it from example.org$/,
  },
  'a file that is not a program': {
    outcome: { kind: 'cannot-start', why: 'it is not executable' },
    want: /cannot be started: it is not executable/,
  },
  'a program that does not end': { outcome: { kind: 'timed-out' }, want: /did not end within 60 seconds/ },
  'a program that prints too much': { outcome: { kind: 'too-long' }, want: /longer than 1048576 bytes/ },
  'a killed program': { outcome: { kind: 'killed', signal: 'SIGTERM' }, want: /ended by SIGTERM/ },
  'a failed program': {
    outcome: { kind: 'exited', code: 3, stdout: SECRET },
    want: /failed with exit code 3; see its messages on standard error/,
  },
  'another output': { outcome: { kind: 'exited', code: 0, stdout: SECRET }, want: /not a JSON object; update/ },
};
for (const [sentence, { outcome, plugin, want }] of Object.entries(failures)) {
  test(`exec plugin error: ${sentence}`, async () => {
    const host = new FakeHost();
    host.outcome = outcome;
    await assert.rejects(new ExecSource(aPlugin(plugin), host).current(), (error: Error) => {
      assert.ok(error instanceof CredentialError);
      assert.match(error.message, /^Cannot get credentials from exec plugin "login": /);
      assert.match(error.message, want);
      assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, new RegExp(SECRET));
      return true;
    });
  });
}
