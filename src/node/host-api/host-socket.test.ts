import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, openSync, closeSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { HostApi } from '#node/endpoint/endpoint-agent.ts';
import { silentLog } from '#lib/log.ts';
import { startHostSocket } from '#node/host-api/host-socket.ts';

interface RequestOptions {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
}

/** Starts a server in a directory whose path is longer than that of a socket may be. */
async function startScene(t: TestContext, host?: HostApi) {
  const root = mkdtempSync(join(tmpdir(), 'host-socket-'));
  const dir = join(root, 'd'.repeat(100), 'e'.repeat(100));
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'host.sock'), 'left by an earlier agent');
  const running = await startHostSocket({ dir, agent: host === undefined ? {} : { host }, log: silentLog });
  const fd = openSync(dir, 'r');
  t.after(async () => {
    await running.stop();
    closeSync(fd);
    rmSync(root, { recursive: true });
  });
  const send = ({ method = 'POST', path = '/host/v1/list', body = '' }: RequestOptions): Promise<string> =>
    new Promise((resolve, reject) => {
      const socketPath = `/proc/self/fd/${fd}/host.sock`;
      const sent = request({ socketPath, method, path, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(`${response.statusCode} ${text}`));
      });
      sent.on('error', reject).end(body);
    });
  return { dir, running, send };
}

const echo: HostApi = {
  call: async (verb, parameters) => ({ status: { code: 0, message: `${verb} ${JSON.stringify(parameters)}` } }),
};

test('answers calls on a socket that only its owner can open', async (t) => {
  const { dir, send } = await startScene(t, echo);
  assert.equal(statSync(join(dir, 'host.sock')).mode & 0o777, 0o600);
  assert.equal(await send({ body: '{"a":1}' }), '200 {"status":{"code":0,"message":"list {\\"a\\":1}"}}');
  assert.equal(await send({ path: '/host/v1/destroy' }), '200 {"status":{"code":0,"message":"destroy {}"}}');
});

test('refuses other methods, paths and bodies', async (t) => {
  const { send } = await startScene(t, echo);
  assert.match(await send({ method: 'GET' }), /^405 /);
  assert.match(await send({ path: '/host/v1/format' }), /^404 /);
  assert.match(await send({ path: '/healthz' }), /^404 /);
  assert.match(await send({ body: '[]' }), /^400 .*the parameters are not a JSON object/);
  assert.match(await send({ body: '{' }), /^400 .*the parameters are not valid JSON/);
  assert.match(await send({ body: 'x'.repeat(5 * 1024 * 1024) }), /^413 /);
});

test('answers 404 before the agent has started', async (t) => {
  const { send } = await startScene(t);
  assert.match(await send({}), /^404 .*does not serve the host API/);
});

test('removes the socket when the server stops', async (t) => {
  const { dir, running } = await startScene(t, echo);
  await running.stop();
  assert.deepEqual(readdirSync(dir), []);
});
