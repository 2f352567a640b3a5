import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '#api/domain/interface.ts';
import { DEFAULT_NETWORK } from '#api/network/guest-network.ts';
import { POD_ADDRESSES_ANNOTATION } from '#api/names.ts';
import type { Reader } from '#client/client.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { aVmi } from '#node/definition/testing/a-vmi.ts';
import { InstanceNetworks } from '#node/guests/instance-networks.ts';

const POD: Stored<Pod> = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'virt-launcher',
    namespace: 'default',
    uid: 'a-pod',
    resourceVersion: '1',
    creationTimestamp: '',
    annotations: { [POD_ADDRESSES_ANNOTATION]: '{"default":["10.244.0.5/16"]}' },
  },
  spec: { containers: [] },
};

/** A cluster with a default network on a node with namespaces. */
async function resolve(networks: Network[], problem?: Error) {
  const network = { metadata: { name: DEFAULT_NETWORK, uid: 'n' }, spec: { subnets: ['10.244.0.0/16'] } };
  const client = { get: async () => network } as unknown as Reader;
  const podNetworks = {
    setDefaultNetwork: async () => {
      if (problem !== undefined) throw problem;
    },
  };
  const lookups = new InstanceNetworks({ client, networks: { podNetworks, hostConfig: async () => undefined } });
  const interfaces = networks.map(({ name }) => ({ name, masquerade: {} }));
  return await lookups.resolve(aVmi({ devices: { interfaces } }, { networks }), POD, new AbortController().signal);
}

test('an interface on the pod network has the addresses of the pod', async () => {
  const found = await resolve([{ name: 'default', pod: {} }]);
  assert.deepEqual(found.is === 'ready' && found.facts?.addresses, { default: ['10.244.0.5/16'] });
});

test('a guest with several pod networks, which earlier versions allowed, stays in user mode', async () => {
  const found = await resolve([
    { name: 'default', pod: {} },
    { name: 'second', pod: {} },
  ]);
  assert.deepEqual(found, { is: 'ready', facts: undefined });
});

test('a default network that cannot be used here keeps the guest waiting, with the reason', async () => {
  const found = await resolve([{ name: 'default', pod: {} }], new Error('it overlaps with a route'));
  assert.deepEqual(found, {
    is: 'waiting',
    reason: 'NetworkUnavailable',
    message: 'the default network: it overlaps with a route',
  });
});
