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
import { createLateAgent } from '#plane/node/late-agent.ts';
import { admitNode } from '#plane/embedded/admit-node.ts';
import { nodeDirOf, readEndpointCertificate } from '#plane/node/node-dir.ts';
import { createPeers } from '#plane/node/peers.ts';

/** Starts an endpoint of node-2, to which peers connect whatever node they ask for. */
async function aScene(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-peers-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const now = () => systemClock.now();
  const pki = await ensurePki({ dir: join(dataDir, 'pki'), hosts: ['localhost'], now, log: silentLog });
  await admitNode(dataDir, 'node-2', { pki, url: 'https://127.0.0.1:6443' });
  const late = createLateAgent();
  const endpoint = await startNodeEndpoint({
    ...{ host: '127.0.0.1', port: 0, ...(await readEndpointCertificate(nodeDirOf(dataDir, 'node-2'))) },
    ...{ agent: late.agent, clock: systemClock, log: silentLog },
  });
  t.after(() => endpoint.stop());
  // All nodes have the address of this endpoint.
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

/** Returns an agent that records the node and its message. */
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

test('a node connects to another with its own identity, repeatedly and in both directions', async (t) => {
  const { late, peersOf } = await aScene(t);
  const heard: string[] = [];
  late.attach(listening(heard));
  const peers = peersOf('system:node:node-1');
  for (const word of ['first', 'second', 'third']) {
    const stream = await peers.open('node-2', {});
    stream.write(word);
    const [answer] = (await once(stream, 'data')) as [Buffer];
    assert.deepEqual([heard.pop(), answer.toString()], [`node-1: ${word}`, 'hello']);
    stream.destroy();
  }
});

test('refuses clients that are not nodes', async (t) => {
  const { late, peersOf } = await aScene(t);
  late.attach(listening([]));
  for (const user of ['admin', 'selfsame-subresources', 'system:node:']) {
    await assert.rejects(peersOf(user).open('node-2', {}), { code: 403 }, user);
  }
});

test('refuses another node that responds at the address', async (t) => {
  const { late, peersOf } = await aScene(t);
  const heard: string[] = [];
  late.attach(listening(heard));
  await assert.rejects(peersOf('system:node:node-1').open('node-3', {}), /"node-2" responds at its address/);
  assert.deepEqual(heard, []);
});

test('refuses migrations before the agent has started', async (t) => {
  const { peersOf } = await aScene(t);
  await assert.rejects(peersOf('system:node:node-1').open('node-2', {}), /this node does not support migrations/);
});
