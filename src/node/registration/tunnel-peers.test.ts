import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HYPERVISOR_LABEL, TUNNEL_ADDRESS_ANNOTATION } from '#api/names.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import { silentLog } from '#lib/log.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { followPeers, selectPeers, tunnelAddressOf } from '#node/registration/tunnel-peers.ts';

function aNode(name: string, address?: string): Node {
  const annotations: Record<string, string> = address === undefined ? {} : { [TUNNEL_ADDRESS_ANNOTATION]: address };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { [HYPERVISOR_LABEL]: 'qemu' }, annotations } };
}

const SELECTIONS: Readonly<Record<string, { nodes: readonly Node[]; local?: string; peers: readonly string[] }>> = {
  'the own node and others of this host are no peers': {
    nodes: [aNode('a', '10.0.0.1'), aNode('b', '10.0.0.1'), aNode('c', '10.0.0.2')],
    peers: ['10.0.0.2'],
  },
  'two nodes of another host are one peer': {
    nodes: [aNode('b', '10.0.0.3'), aNode('c', '10.0.0.3'), aNode('d', '10.0.0.2')],
    peers: ['10.0.0.2', '10.0.0.3'],
  },
  'nodes without the annotation have no tunnel': { nodes: [aNode('b')], peers: [] },
  'one address in two forms is one host': {
    local: 'fd00::1',
    nodes: [aNode('a', 'fd00:0::1'), aNode('b', 'fd00::2'), aNode('c', 'fd00:0:0::2')],
    peers: ['fd00::2'],
  },
};

for (const [name, { nodes, local = '10.0.0.1', peers }] of Object.entries(SELECTIONS)) {
  test(name, () => assert.deepEqual(selectPeers(nodes, local), { peers, ignored: [] }));
}

test('an unusable address is named, and does not keep others from being connected', () => {
  const nodes = ['fd00::1', '127.0.0.1', 'x; reboot', '0.0.0.0', '10.0.0.2'].map((text, i) => aNode(`n${i}`, text));
  const { peers, ignored } = selectPeers(nodes, '10.0.0.1');
  assert.deepEqual(peers, ['10.0.0.2']);
  assert.deepEqual(ignored, [
    'n0: fd00::1 is not of the same family as 10.0.0.1, the address of this host',
    'n1: "127.0.0.1" is not an address of a host',
    'n2: "x; reboot" is not an address of a host',
    'n3: "0.0.0.0" is not an address of a host',
  ]);
});

test('loopback and wildcard addresses are not addresses of a tunnel', () => {
  assert.equal(tunnelAddressOf('192.0.2.7'), '192.0.2.7');
  assert.equal(tunnelAddressOf('FD00:0::7'), 'fd00::7');
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::']) {
    assert.equal(tunnelAddressOf(address), undefined, address);
  }
});

test('peers follow the nodes that come and go, and a failure is tried again', async () => {
  const clock = new FakeClock();
  const api = new FakeApi();
  const { client } = new FakeLink(api, [NODES]);
  const stopping = new AbortController();
  const calls: string[] = [];
  let failures = 0;
  await client.create(NODES, aNode('a', '10.0.0.1'));
  await client.create(NODES, aNode('b', '10.0.0.2'));
  const following = followPeers({
    reader: client,
    local: '10.0.0.1',
    async setPeers(local, peers) {
      if (failures-- > 0) throw new Error('no such device');
      calls.push(`${local} ${peers.join(',')}`);
    },
    clock,
    log: silentLog,
    signal: stopping.signal,
  });
  await clock.advance(0);
  assert.deepEqual(calls.splice(0), ['10.0.0.1 10.0.0.2']);
  // A change that concerns nobody else.
  await client.patch(NODES, { name: 'b' }, { type: 'merge', body: { metadata: { labels: { rack: '7' } } } });
  await clock.advance(1000);
  assert.deepEqual(calls, []);
  failures = 2;
  await client.create(NODES, aNode('c', '10.0.0.3'));
  await clock.advance(10_000);
  assert.deepEqual(calls.splice(0), ['10.0.0.1 10.0.0.2,10.0.0.3']);
  for (const name of ['b', 'c']) await client.delete(NODES, { name });
  await clock.advance(1000);
  assert.equal(calls.at(-1), '10.0.0.1 ');
  stopping.abort();
  await following.stop();
});
