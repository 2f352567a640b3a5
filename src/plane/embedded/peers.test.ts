import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Reader } from '#client/client.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { lateAgent } from '#plane/late-agent.ts';
import { admitNode } from '#plane/embedded/admit-node.ts';
import { nodeDirOf, readEndpointCertificate } from '#plane/node-dir.ts';
import { createPeers } from '#plane/peers.ts';

/** An endpoint of node-2, and how others reach what they believe to be it. */
async function aScene(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-peers-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const now = () => systemClock.now();
  const pki = await ensurePki({ dir: join(dataDir, 'pki'), hosts: ['localhost'], now, log: silentLog });
  await admitNode(dataDir, 'node-2', { pki, url: 'https://127.0.0.1:6443' });
  const late = lateAgent();
  const endpoint = await startNodeEndpoint({
    ...{ host: '127.0.0.1', port: 0, ...(await readEndpointCertificate(nodeDirOf(dataDir, 'node-2'))) },
    ...{ agent: late.agent, clock: systemClock, log: silentLog },
  });
  t.after(() => endpoint.stop());
  // Whatever node is asked for is said to be there.
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: endpoint.port } } };
  const client = { get: async () => ({ metadata: { name: 'node' }, status }) } as unknown as Reader;
  const peersOf = (user: string) => {
    const { certPem: cert, keyPem: key } = pki.issueClientCertificate({ user, groups: ['system:nodes'], days: 1 });
    const peers = createPeers({ client, cert, key, ca: pki.caPem, clock: systemClock });
    t.after(() => peers.close());
    return peers;
  };
  return { late, peersOf };
}

/** Says who came, and what was said. */
function listening(heard: string[]): EndpointAgent {
  return {
    migrations: {
      async accept(from, stream) {
        const [chunk] = (await once(stream, 'data')) as [Buffer];
        heard.push(`${from}: ${chunk.toString()}`);
        stream.end('hello');
      },
    },
  } satisfies Pick<EndpointAgent, 'migrations'> as unknown as EndpointAgent;
}

test('a node reaches another as itself, as often as it likes, and both can speak', async (t) => {
  const { late, peersOf } = await aScene(t);
  const heard: string[] = [];
  late.is(listening(heard));
  const peers = peersOf('system:node:node-1');
  for (const word of ['first', 'second', 'third']) {
    const stream = await peers.open('node-2', {});
    stream.write(word);
    const [answer] = (await once(stream, 'data')) as [Buffer];
    assert.deepEqual([heard.pop(), answer.toString()], [`node-1: ${word}`, 'hello']);
    stream.destroy();
  }
});

test('whoever is no node is turned away', async (t) => {
  const { late, peersOf } = await aScene(t);
  late.is(listening([]));
  for (const user of ['admin', 'selfsame-subresources', 'system:node:']) {
    await assert.rejects(peersOf(user).open('node-2', {}), { code: 403 }, user);
  }
});

test('another node that answers in its place is not taken for it', async (t) => {
  const { late, peersOf } = await aScene(t);
  const heard: string[] = [];
  late.is(listening(heard));
  await assert.rejects(peersOf('system:node:node-1').open('node-3', {}), /"node-2" answers where it should be/);
  assert.deepEqual(heard, []);
});

test('nobody is let in before the agent is there', async (t) => {
  const { peersOf } = await aScene(t);
  await assert.rejects(peersOf('system:node:node-1').open('node-2', {}), /this node does not support migrations/);
});
