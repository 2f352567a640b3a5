import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '#engine/metrics.ts';
import { openMemoryStore } from '#engine/store/open-store.ts';

test('counts requests, times and watches in the text format of Prometheus', async () => {
  const store = await openMemoryStore();
  const metrics = createMetrics(store);
  metrics.requestDone('get', 'pods', 200, 0.0002);
  metrics.requestDone('get', 'pods', 200, 0.02);
  metrics.requestDone('get', '', 404, 99);
  metrics.watchStarted('pods');
  metrics.watchStarted('pods');
  metrics.watchEnded('pods');
  const lines = metrics.text().split('\n');
  for (const line of [
    '# TYPE apiserver_request_total counter',
    'apiserver_request_total{verb="get",resource="pods",code="200"} 2',
    'apiserver_request_total{verb="get",resource="",code="404"} 1',
    'apiserver_request_duration_seconds_bucket{verb="get",le="0.001"} 1',
    'apiserver_request_duration_seconds_bucket{verb="get",le="0.025"} 2',
    'apiserver_request_duration_seconds_bucket{verb="get",le="10"} 2',
    'apiserver_request_duration_seconds_bucket{verb="get",le="+Inf"} 3',
    'apiserver_request_duration_seconds_count{verb="get"} 3',
    'apiserver_longrunning_requests{resource="pods"} 1',
    'selfsame_store_revision 0',
    'selfsame_store_writable 1',
  ]) {
    assert.ok(lines.includes(line), line);
  }
  assert.equal(lines.at(-1), '', 'the last line ends');
  await store.close();
});
