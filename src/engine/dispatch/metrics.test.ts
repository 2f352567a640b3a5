import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEngineMetrics } from '#engine/dispatch/metrics.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';

test('counts requests, times and watches in the text format of Prometheus', async () => {
  const store = await openMemoryStore();
  const registry = new MetricRegistry();
  const metrics = createEngineMetrics(registry, store);
  metrics.recordRequest('get', 'pods', 200, 0.0002);
  metrics.recordRequest('get', 'pods', 200, 0.02);
  metrics.recordRequest('get', '', 404, 99);
  metrics.recordWatchStart('pods');
  metrics.recordWatchStart('pods');
  metrics.recordWatchEnd('pods');
  const lines = registry.text().split('\n');
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
  assert.equal(lines.at(-1), '', 'the last line must end with a newline');
  await store.close();
});

test('the number of webhook and policy labels is bounded', async () => {
  const store = await openMemoryStore();
  const registry = new MetricRegistry();
  const metrics = createEngineMetrics(registry, store);
  for (let i = 0; i < 3000; i++) {
    metrics.recordWebhookCall('validating', `hook-${i}`, 'allowed', 0.002);
    metrics.recordPolicyDenial(`policy-${i}`, 'binding', 'deny');
  }
  metrics.recordWebhookCall('validating', 'hook-0', 'allowed', 0.002);
  const lines = registry.text().split('\n');
  for (const line of [
    'apiserver_admission_webhook_request_total{type="validating",name="hook-0",outcome="allowed"} 2',
    'apiserver_admission_webhook_request_total{type="validating",name="other",outcome="allowed"} 2000',
    'apiserver_admission_webhook_admission_duration_seconds_count{type="validating",name="other"} 2000',
    'apiserver_validating_admission_policy_check_total{policy="other",policy_binding="other",enforcement_action="deny"} 2000',
  ]) {
    assert.ok(lines.includes(line), line);
  }
  assert.equal(lines.filter((line) => line.startsWith('apiserver_admission_webhook_request_total{')).length, 1001);
  await store.close();
});
