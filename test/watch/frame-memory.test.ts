/** Frames are shared by all watchers, and are freed soon after their last use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { startTestApi } from '#test/support/test-api.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

test('frames that were sent to a watcher are freed', async () => {
  const api = await startTestApi({ store: await openMemoryStore({ maxHistoryBytes: 1024 * 1024 }) });
  const item = `${CONFIG_MAPS}/large`;
  const pad = 'x'.repeat(1000 * 1024);
  await api.ok('POST', CONFIG_MAPS, {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data: { pad } },
  });
  const watch = await api.watch(`${CONFIG_MAPS}?watch=1`);
  const before = heldBytes();
  for (let turn = 0; turn < 60; turn++) await api.ok('PATCH', item, { body: { data: { turn: String(turn) } } });
  await watch.awaitEvents(61);
  watch.stop();
  await api.stop();
  const after = heldBytes();
  assert.ok(after - before < 20 * 1024 * 1024, `${Math.round((after - before) / 1024 / 1024)} MiB are still held`);
});

function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers;
}
