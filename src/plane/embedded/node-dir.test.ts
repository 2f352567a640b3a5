/** Tests the directory of an admitted node: its permissions, its certificates, and an endpoint that uses them. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import type { IncomingMessage } from 'node:http';
import { HOST_OPERATOR } from '#api/host-api.ts';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { createLateAgent } from '#plane/node/late-agent.ts';
import { admitHostOperator, admitNode } from '#plane/embedded/admit-node.ts';
import { nodeDirOf, readEndpointCertificate, sharedDirOf } from '#plane/node/node-dir.ts';

async function scene(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-node-dir-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const now = () => systemClock.now();
  const pki = await ensurePki({ dir: join(dataDir, 'pki'), hosts: ['localhost'], now, log: silentLog });
  const nodeDir = nodeDirOf(dataDir, 'node-1');
  const admit = () => admitNode(dataDir, 'node-1', { pki, url: 'https://127.0.0.1:6443' });
  await admit();
  const serve = async () => {
    const certificate = await readEndpointCertificate(nodeDir);
    const { agent } = createLateAgent();
    return startNodeEndpoint({
      ...{ host: '127.0.0.1', port: 0, ...certificate },
      ...{ agent, clock: systemClock, log: silentLog },
    });
  };
  const get = async (port: number, path: string, user: string) => {
    const { certPem: cert, keyPem: key } = pki.issueClientCertificate({ user, groups: [], days: 1 });
    const sent = request({ host: '127.0.0.1', port, path, cert, key, ca: pki.caPem, agent: false });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: response.statusCode, body: await text(response) };
  };
  return { dataDir, nodeDir, pki, admit, serve, get };
}

const modeOf = (path: string) => statSync(path).mode & 0o777;

test('guests can pass through the directories of a node, and cannot read its secrets', async (t) => {
  const { dataDir, nodeDir } = await scene(t);
  const passable = [
    nodeDir,
    join(nodeDir, 'host-disks'),
    sharedDirOf(dataDir),
    join(sharedDirOf(dataDir), 'host-disks'),
  ];
  for (const path of passable) assert.equal(modeOf(path), 0o711, path);
  assert.equal(modeOf(join(nodeDir, 'pki')), 0o700);
  for (const name of ['kubeconfig', 'pki/endpoint.key']) assert.equal(modeOf(join(nodeDir, name)), 0o600, name);
});

test('a node that is admitted again gets new certificates for the same server', async (t) => {
  const { nodeDir, admit } = await scene(t);
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const access = () => loadKubeconfig(readFile(join(nodeDir, 'kubeconfig')), { directory: nodeDir, readFile });
  const [before, certificate] = [access(), await readEndpointCertificate(nodeDir)];
  await admit();
  assert.equal(JSON.stringify(access()).includes('https://127.0.0.1:6443'), true);
  assert.notDeepEqual(access(), before);
  assert.notEqual((await readEndpointCertificate(nodeDir)).cert, certificate.cert);
});

test('the endpoint authorizes clients, and reports while the agent starts', async (t) => {
  const { serve, get } = await scene(t);
  const endpoint = await serve();
  t.after(() => endpoint.stop());
  const logs = '/containerLogs/default/pod/compute';
  assert.deepEqual(await get(endpoint.port, '/healthz', 'anybody'), { status: 200, body: 'ok' });
  assert.equal((await get(endpoint.port, logs, 'system:node:node-2')).status, 403);
  const starting = await get(endpoint.port, logs, 'kube-apiserver-kubelet-client');
  assert.equal(starting.status, 500);
  assert.match(starting.body, /the agent of the node is starting/);
});

test('the endpoint stops despite a client that connected and sent nothing', { timeout: 10_000 }, async (t) => {
  const { serve } = await scene(t);
  const endpoint = await serve();
  const silent = connect(endpoint.port, '127.0.0.1');
  silent.on('error', () => undefined);
  await once(silent, 'connect');
  const closed = once(silent, 'close');
  await endpoint.stop();
  await closed;
});

test('the host operator has its own certificate, which other users cannot read', async (t) => {
  const { dataDir, pki } = await scene(t);
  await admitHostOperator(dataDir, pki);
  const dir = join(dataDir, 'host-operator');
  assert.equal(modeOf(dir), 0o700);
  for (const name of ['client.key', 'client.crt', 'ca.crt']) assert.equal(modeOf(join(dir, name)), 0o600, name);
  const { subject } = new X509Certificate(readFileSync(join(dir, 'client.crt')));
  assert.equal(subject, `CN=${HOST_OPERATOR}`);
});
