/** The audit log of the real program: users and source addresses, failed authentication, and the log after a kill. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sendHttp1Request, sendHttp2Request, openHttp2Session, withoutCredentials } from '#test/support/raw-https.ts';
import { startServer, createTemporaryDir } from '#test/support/server-process.ts';
import type { Loose } from '#test/support/test-api.ts';

const PROGRAM = join(import.meta.dirname, '../../src/main.ts');
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const JSON_TYPE = { 'content-type': 'application/json', 'user-agent': 'tester' };
const aConfigMap = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

test('records the user and the source of each request with the audit id of its answer', async (t) => {
  const dataDir = createTemporaryDir(t);
  const server = await startServer(t, { dataDir });
  const access = server.access();
  const anonymous = withoutCredentials(access);
  const session = openHttp2Session(t, access);
  const post = (name: string) => ({
    method: 'POST',
    path: CONFIG_MAPS,
    headers: JSON_TYPE,
    body: aConfigMap(name),
  });

  const answers = [
    await sendHttp1Request(access, post('by-http1')),
    await sendHttp2Request(session, access, post('by-http2')),
    await sendHttp1Request({ ...anonymous, token: 'hunter2' }, { path: `${CONFIG_MAPS}?token=hunter2` }),
    await sendHttp1Request(anonymous, { path: CONFIG_MAPS }),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201, 401, 403],
  );
  const metrics = await sendHttp1Request(access, { path: '/metrics' });
  assert.match(metrics.text, /^selfsame_audit_dropped_total 0$/m);
  const { code } = await server.kill('SIGTERM');
  assert.equal(code, 0);

  const file = join(dataDir, 'audit/audit.log');
  const text = readFileSync(file, 'utf8');
  assert.doesNotMatch(text, /hunter2/);
  assert.equal((statSync(file).mode & 0o777).toString(8), '600');
  const events: Loose[] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const recorded = answers.map(({ headers }) => events.find(({ auditID }) => auditID === headers['audit-id']));
  const ip = ['127.0.0.1'];
  assert.deepEqual(
    recorded.map(({ user, verb, sourceIPs, objectRef, responseStatus }) => [
      user.username,
      verb,
      sourceIPs,
      objectRef.name,
      responseStatus.code,
    ]),
    [
      ['selfsame-admin', 'create', ip, 'by-http1', 201],
      ['selfsame-admin', 'create', ip, 'by-http2', 201],
      [undefined, 'list', ip, undefined, 401],
      ['system:anonymous', 'list', ip, undefined, 403],
    ],
  );
  assert.equal(recorded[0].userAgent, 'tester');
  const own = events.filter(({ user }) => user.username === 'system:apiserver');
  assert.ok(own.length > 0);
  assert.ok(own.every(({ sourceIPs }) => sourceIPs === undefined));
});

test('a restarted server continues its log after a kill, and selfsame audit reads all of it', async (t) => {
  const dataDir = createTemporaryDir(t);
  const rounds = ['first', 'second'];
  for (const name of rounds) {
    const server = await startServer(t, { dataDir });
    const request = {
      method: 'POST',
      path: CONFIG_MAPS,
      headers: JSON_TYPE,
      body: aConfigMap(name),
    };
    assert.equal((await sendHttp1Request(server.access(), request)).status, 201);
    // Batches are written ten times a second; the first one creates the file.
    const file = join(dataDir, 'audit/audit.log');
    while (!existsSync(file) || !readFileSync(file, 'utf8').includes(`"name":"${name}"`))
      await sendHttp1Request(server.access(), { path: '/livez' });
    await server.kill('SIGKILL');
  }
  const words = ['audit', '--data-dir', dataDir, '--user', 'selfsame-admin', '--resource', 'configmaps'];
  const shown = execFileSync(process.execPath, [PROGRAM, ...words], { encoding: 'utf8' });
  const rows = shown.trimEnd().split('\n').slice(1);
  assert.deepEqual(
    rows.map((row) => / default\/(\S+) +127\.0\.0\.1$/.exec(row)?.[1]),
    rounds,
    shown,
  );
});
