/** The host API over the HTTPS endpoint of a node: who may call it, and how it handles bodies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { HOST_OPERATOR, HOST_READER } from '#api/host-api.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { admitNode } from '#plane/embedded/admit-node.ts';
import { nodeDirOf, readEndpointCertificate } from '#plane/node/node-dir.ts';

const unexpected = (): never => assert.fail('this call is not expected');

async function aScene(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-host-endpoint-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const now = () => systemClock.now();
  const pki = await ensurePki({ dir: join(dataDir, 'pki'), hosts: ['localhost'], now, log: silentLog });
  await admitNode(dataDir, 'node-1', { pki, url: 'https://127.0.0.1:6443' });
  const called: string[] = [];
  const ended = Promise.withResolvers<void>();
  const agent: EndpointAgent = {
    ...{ find: unexpected, pause: unexpected, resume: unexpected, softReboot: unexpected, reset: unexpected },
    ...{
      openConsole: unexpected,
      openDisplay: unexpected,
      screenshot: unexpected,
      openPort: unexpected,
      logs: unexpected,
    },
    ...{ freeze: unexpected, unfreeze: unexpected, readGuest: unexpected },
    host: {
      async call(verb, parameters, { signal }) {
        called.push(`${verb} ${JSON.stringify(parameters).length}`);
        if (verb === 'hotplugNic') {
          await once(signal, 'abort');
          ended.resolve();
        }
        return { status: { code: 0, message: 'Done' } };
      },
    },
  };
  const certificate = await readEndpointCertificate(nodeDirOf(dataDir, 'node-1'));
  const endpoint = await startNodeEndpoint({
    ...{ host: '127.0.0.1', port: 0, ...certificate },
    ...{ agent, clock: systemClock, log: silentLog },
  });
  t.after(() => endpoint.stop());
  const open = (path: string, user: string, method = 'POST') => {
    const { certPem: cert, keyPem: key } = pki.issueClientCertificate({ user, groups: [], days: 1 });
    const { port } = endpoint;
    return request({ host: '127.0.0.1', port, path, method, cert, key, ca: pki.caPem, agent: false });
  };
  const ask = async (path: string, user: string, body = '', method?: string) => {
    const asked = open(path, user, method);
    // The server may refuse the request before all of it was sent.
    asked.on('error', () => {});
    asked.end(body);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    return { code: response.statusCode, body: await text(response).catch(() => '') };
  };
  return { ask, open, called, ended: ended.promise };
}

test('the host API answers only its reader and its operator', async (t) => {
  const { ask, called } = await aScene(t);
  const listed = await ask('/host/v1/list', HOST_READER, '{"fullStatus":true}');
  assert.deepEqual(listed, { code: 200, body: '{"status":{"code":0,"message":"Done"}}' });
  assert.equal((await ask('/host/v1/create', HOST_OPERATOR)).code, 200);
  assert.equal((await ask('/host/v1/create', HOST_READER)).code, 403);
  assert.equal((await ask('/host/v1/list', 'selfsame-subresources')).code, 403);
  assert.equal((await ask('/host/v1/list', HOST_READER, '', 'GET')).code, 405);
  assert.equal((await ask('/host/v1/list', HOST_READER, 'no JSON')).code, 400);
  assert.deepEqual(called, ['list 19', 'create 2']);
});

test('a call may have a body of up to 4 MiB', async (t) => {
  const { ask, called } = await aScene(t);
  const body = (bytes: number) => JSON.stringify({ a: 'x'.repeat(bytes - '{"a":""}'.length) });
  const most = 4 * 1024 * 1024;
  assert.equal((await ask('/host/v1/create', HOST_OPERATOR, body(most))).code, 200);
  assert.equal((await ask('/host/v1/create', HOST_OPERATOR, body(most + 1))).code, 413);
  assert.deepEqual(called, [`create ${most}`]);
});

test('a call is aborted when its caller disconnects', async (t) => {
  const { open, called, ended } = await aScene(t);
  const asked = open('/host/v1/hotplugNic', HOST_OPERATOR);
  asked.on('error', () => {});
  asked.end('{}');
  while (called.length === 0) await new Promise((resolve) => setImmediate(resolve));
  asked.destroy();
  await ended;
});
