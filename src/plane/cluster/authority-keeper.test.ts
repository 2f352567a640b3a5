import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { notFound } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import { AuthorityKeeper } from '#plane/cluster/authority-keeper.ts';

const HOUR = 3_600_000;
const lifetimes = { authorityMs: 40 * HOUR, certificateMs: 10 * HOUR };

/** Starts a keeper with a fake Secret and one certificate. */
async function scene(t: { after(fn: () => unknown): void }) {
  const clock = new FakeClock();
  const secret: { now?: KubeObject } = {};
  const client = {
    get: async () => secret.now ?? Promise.reject(notFound({ group: '', plural: 'secrets' }, 'selfsame-ca')),
    create: async (_: unknown, object: KubeObject) => (secret.now = object),
    update: async (_: unknown, object: KubeObject) => (secret.now = object),
  } as unknown as Client;
  const keeper = await AuthorityKeeper.open({ client, lifetimes, clock, log: silentLog });
  const held = keeper.hold({ subject: { commonName: 'services' }, purpose: { kind: 'server', hosts: ['localhost'] } });
  const stopping = new AbortController();
  const running = keeper.run(stopping);
  t.after(async () => {
    stopping.abort();
    await running;
  });
  let notifications = 0;
  keeper.onChange(() => notifications++);
  const isTrusted = () => isIssuedBy(new X509Certificate(held.now().certPem), keeper.bundle());
  return { clock, secret, keeper, held, isTrusted, notifications: () => notifications };
}

test('a certificate is renewed at half of its lifetime, and listeners are notified', async (t) => {
  const { clock, held, isTrusted, notifications } = await scene(t);
  const first = held.now().certPem;
  await clock.advance(4 * HOUR);
  assert.deepEqual([held.now().certPem === first, notifications()], [true, 0]);
  await clock.advance(2 * HOUR);
  assert.deepEqual([held.now().certPem === first, notifications()], [false, 1]);
  assert.ok(isTrusted());
});

test('if the Secret is deleted, new authorities issue the certificates at once', async (t) => {
  const { clock, secret, keeper, isTrusted } = await scene(t);
  const before = keeper.bundle();
  delete secret.now;
  await clock.advance(HOUR);
  assert.notEqual(keeper.bundle(), before);
  assert.ok(isTrusted());
});
