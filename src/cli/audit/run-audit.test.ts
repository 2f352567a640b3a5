import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AUDIT_FLAGS } from '#cli/audit/audit-query.ts';
import { runAudit } from '#cli/audit/run-audit.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';

interface Event {
  user?: string;
  as?: string;
  code?: number;
  message?: string;
  annotations?: Record<string, string>;
  [key: string]: unknown;
}

function anEvent({ user = 'alice', as, code = 201, message, annotations, ...rest }: Event = {}): string {
  return JSON.stringify({
    kind: 'Event',
    verb: 'create',
    requestURI: '/x',
    user: user === '' ? {} : { username: user },
    impersonatedUser: as === undefined ? undefined : { username: as },
    sourceIPs: ['192.0.2.7'],
    objectRef: { resource: 'virtualmachines', apiGroup: 'kubevirt.io', namespace: 'default', name: 'db' },
    responseStatus: { code, message },
    requestReceivedTimestamp: '2026-01-31T12:00:00.000001Z',
    annotations,
    ...rest,
  });
}

async function run(t: TestContext, lines: readonly string[], words: readonly string[] = [], more = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'audit-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  mkdirSync(join(dataDir, 'audit'));
  writeFileSync(join(dataDir, 'audit/audit.log'), lines.map((line) => `${line}\n`).join(''));
  const output = { out: '', err: '' };
  const running = runAudit({
    dataDir,
    flags: parseArgs(AUDIT_FLAGS, words).flags,
    stdout: { write: (text) => (output.out += text) },
    stderr: { write: (text) => (output.err += text) },
    clock: new FakeClock(),
    signal: new AbortController().signal,
    ...more,
  });
  const failure = await running.then(
    () => undefined,
    (error: unknown) => error,
  );
  return { failure, ...output };
}

test('prints a table', async (t) => {
  const { failure, out, err } = await run(t, [
    anEvent(),
    anEvent({ verb: 'delete', code: 403, user: 'mallory', message: 'not\u001b[2J allowed' }),
    anEvent({ user: '', code: 401, verb: 'post', objectRef: undefined, message: 'Unauthorized' }),
    anEvent({ as: 'bob', sourceIPs: undefined, annotations: { 'audit.selfsame.io/dry-run': 'All' } }),
    anEvent({
      annotations: { 'audit.selfsame.io/dropped-before': '3', 'audit.selfsame.io/warnings': '["old","older"]' },
      objectRef: { resource: 'pods', subresource: 'eviction', namespace: 'default', name: 'p' },
    }),
  ]);
  assert.equal(err, '');
  assert.equal(failure, undefined);
  assert.equal(
    out,
    [
      'TIME                  CODE  USER              VERB    RESOURCE              OBJECT                    FROM       NOTE',
      '2026-01-31T12:00:00Z  201   alice             create  virtualmachines.kubevirt.io  default/db                192.0.2.7',
      '2026-01-31T12:00:00Z  403   mallory           delete  virtualmachines.kubevirt.io  default/db                192.0.2.7  not?[2J allowed',
      '2026-01-31T12:00:00Z  401   -                 post    -                            /x                        192.0.2.7  Unauthorized',
      '2026-01-31T12:00:00Z  201   alice as bob      create  virtualmachines.kubevirt.io  default/db                -          dry run',
      '2026-01-31T12:00:00Z  201   alice             create  pods/eviction                default/p                 192.0.2.7  3 earlier events were lost; warning: old; warning: older',
      '',
    ].join('\n'),
  );
});

test('prints the matching lines as JSON', async (t) => {
  const lines = [anEvent(), anEvent({ user: 'bob' }), anEvent({ user: 'bob', code: 409 })];
  const { out } = await run(t, lines, ['-o', 'json', '--user', 'bob', '--refused']);
  assert.equal(out, `${lines[2]}\n`);
});

test('skips and reports lines that are not audit events', async (t) => {
  const { failure, out, err } = await run(
    t,
    ['{"kind":"Ev', anEvent(), '[]', '{"kind":"Pod"}', 'null'],
    ['-o', 'json'],
  );
  assert.equal(out, `${anEvent()}\n`);
  assert.equal(err, 'Warning: 4 lines could not be read\n');
  assert.equal(failure, undefined);
});

test('reads lines of kube-apiserver with missing fields', async (t) => {
  const { out } = await run(t, ['{"kind":"Event","annotations":{"audit.selfsame.io/warnings":"{"},"sourceIPs":[1]}']);
  assert.match(out, /\n1970-01-01T00:00:00Z {2}0 +- +- +-\n$/);
});

test('refuses a directory without a log and an invalid time', async (t) => {
  const nothing = await run(t, [], [], { dataDir: '/nonexistent' });
  assert.match(String(nothing.failure), /^CommandError: Cannot find an audit log in \/nonexistent\/audit; set /);
  const wrong = await run(t, [], ['--since', 'x']);
  assert.equal(wrong.out, '');
  assert.match(String(wrong.failure), /^UsageError: --since must be like/);
});
