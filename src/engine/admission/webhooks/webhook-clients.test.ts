import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileHook, type Hook } from '#engine/admission/webhooks/hook.ts';
import { WebhookClients } from '#engine/admission/webhooks/webhook-clients.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { systemClock } from '#lib/clock.ts';

const store = await openMemoryStore();
const parts = { store, services: new LocalServices(), clock: systemClock };

function aHook(name: string, url = 'https://hooks.test/'): Hook {
  return compileHook('config', { name, clientConfig: { url } }, { namespaceLabels: () => ({}), equivalents: () => [] });
}

test('a webhook in use keeps its client', () => {
  const clients = new WebhookClients(parts);
  clients.keepOnly([aHook('a')]);
  const client = clients.of(aHook('a'));
  assert.equal(clients.of(aHook('a')), client);
  clients.keepOnly([aHook('a'), aHook('b')]);
  assert.equal(clients.of(aHook('a')), client);
});

test('another clientConfig is another client', () => {
  const clients = new WebhookClients(parts);
  clients.keepOnly([aHook('a')]);
  const client = clients.of(aHook('a'));
  clients.keepOnly([aHook('a', 'https://elsewhere.test/')]);
  assert.notEqual(clients.of(aHook('a', 'https://elsewhere.test/')), client);
});

test('the client of a removed webhook is not kept', () => {
  const clients = new WebhookClients(parts);
  clients.keepOnly([aHook('a')]);
  clients.keepOnly([]);
  const late = clients.of(aHook('a'));
  assert.notEqual(clients.of(aHook('a')), late);
});
