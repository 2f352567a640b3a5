/** An informer over HTTPS while the server is killed and restarted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startServer, createTemporaryDir, openTransport } from '#test/support/server-process.ts';

const LIVES = 4;
const OBJECTS = 20;

test('an informer sees every object again after each kill, and every state once and in order', async (t) => {
  const dataDir = createTemporaryDir(t);
  let server = await startServer(t, { dataDir });
  const access = server.access();
  const port = Number(new URL(access.server).port);
  // Each start issues a new server certificate, but the CA stays, so the first kubeconfig remains valid.
  const client = createClient(openTransport(t, access));

  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const informer = new Informer({
    reader: client,
    type: CONFIG_MAPS,
    namespace: 'default',
    clock: systemClock,
    log: silentLog,
  });
  const seen = new Map<string, number[]>();
  informer.onChange((key, change) => {
    const revisions = seen.get(key) ?? [];
    if (change.new !== undefined) revisions.push(Number(change.new.metadata.resourceVersion));
    seen.set(key, revisions);
  });
  void informer.start({ signal: stopping.signal });
  await informer.waitForSync();

  const written = new Map<string, string[]>();
  const note = ({ metadata }: Stored) => {
    const key = `default/${metadata.name}`;
    written.set(key, [...(written.get(key) ?? []), metadata.resourceVersion]);
  };
  for (let life = 0; life < LIVES; life++) {
    for (let i = 0; i < OBJECTS; i++) {
      const name = { namespace: 'default', name: `seen-${i}` };
      if (life === 0) {
        note(await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...name } }));
      } else {
        note(await client.patch(CONFIG_MAPS, name, { type: 'merge', body: { data: { life: String(life) } } }));
      }
    }
    await server.kill('SIGKILL');
    server = await startServer(t, { dataDir, port });
  }
  const gone = { namespace: 'default', name: 'seen-0' };
  await client.delete(CONFIG_MAPS, gone);

  const last = [...written.values()]
    .map((revisions) => revisions.at(-1)!)
    .toSorted((a, b) => Number(b) - Number(a))[0]!;
  await informer.waitForRevision(last, { signal: AbortSignal.timeout(60_000) });
  await informer.waitUntil(() => informer.get('default/seen-0') === undefined, { signal: AbortSignal.timeout(60_000) });

  const { items } = await client.list(CONFIG_MAPS, { namespace: 'default' });
  const byName = (objects: readonly Stored[]) =>
    Object.fromEntries(objects.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
  assert.deepEqual(byName(informer.list()), byName(items));
  for (const [key, revisions] of written) {
    // Nothing is compacted in a run this short: the informer saw each state once.
    assert.deepEqual(seen.get(key), revisions.map(Number), key);
  }
  assert.equal((await server.kill('SIGTERM')).code, 0);
});
