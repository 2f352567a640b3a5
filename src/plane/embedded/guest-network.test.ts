import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GUEST_NETWORKS } from '#api/network/guest-network.ts';
import type { Client } from '#client/client.ts';
import { alreadyExists, notFound } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { ensureGuestNetwork } from '#plane/embedded/guest-network.ts';

/** Returns a client of a server that has this network, or none, and the networks that were created. */
function aClient(present?: readonly string[], { isRaced = false } = {}) {
  const created: unknown[] = [];
  const client = {
    async get() {
      if (present === undefined) throw notFound(GUEST_NETWORKS, 'default');
      return { metadata: { name: 'default' }, spec: { subnets: present } };
    },
    async create(_type: unknown, object: KubeObject) {
      if (isRaced) throw alreadyExists(GUEST_NETWORKS, 'default');
      created.push(object['spec']);
      return object;
    },
  } as unknown as Client;
  return { client, created };
}

const neverChosen = { chooseSubnets: () => Promise.reject(new Error('the subnets are not needed')) };

test('creates the network with the subnets that are given or chosen', async () => {
  const given = aClient();
  await ensureGuestNetwork(given.client, { subnets: ['10.50.0.0/16'] }, { log: silentLog });
  assert.deepEqual(given.created, [{ subnets: ['10.50.0.0/16'] }]);
  const chosen = aClient();
  await ensureGuestNetwork(chosen.client, { chooseSubnets: async () => ['10.51.0.0/16'] }, { log: silentLog });
  assert.deepEqual(chosen.created, [{ subnets: ['10.51.0.0/16'] }]);
});

test('leaves an existing network as it is, and warns if other subnets are given', async () => {
  const { client, created } = aClient(['10.50.0.0/16']);
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (fields: unknown) => void warnings.push(fields) };
  await ensureGuestNetwork(client, neverChosen, { log });
  await ensureGuestNetwork(client, { subnets: ['10.50.0.0/16'] }, { log });
  assert.deepEqual(warnings, []);
  await ensureGuestNetwork(client, { subnets: ['10.51.0.0/16'] }, { log });
  assert.deepEqual(warnings, [{ subnets: ['10.50.0.0/16'], ignored: ['10.51.0.0/16'] }]);
  assert.deepEqual(created, []);
});

test('accepts that somebody else creates the network at the same time', async () => {
  const { client } = aClient(undefined, { isRaced: true });
  await ensureGuestNetwork(client, { subnets: ['10.50.0.0/16'] }, { log: silentLog });
});
