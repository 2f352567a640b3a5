import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { startProcessMetrics } from '#lib/metrics/process-metrics.ts';

const BLOCK_MS = 60;

function readValues(metrics: MetricRegistry): Map<string, number> {
  const lines = metrics.text().split('\n');
  return new Map(
    lines.filter((line) => /^[a-z]/.test(line)).map((line) => [line.split(' ')[0]!, Number(line.split(' ')[1])]),
  );
}

test('describes this process', (t) => {
  const metrics = new MetricRegistry();
  t.after(startProcessMetrics(metrics));
  const values = readValues(metrics);
  const valueOf = (name: string) => values.get(name) ?? Number.NaN;
  assert.ok(valueOf('process_cpu_seconds_total') > 0);
  assert.ok(valueOf('process_resident_memory_bytes') > valueOf('nodejs_heap_size_used_bytes'));
  assert.ok(valueOf('nodejs_heap_size_total_bytes') >= valueOf('nodejs_heap_size_used_bytes'));
  assert.ok(valueOf('process_open_fds') > 2 && valueOf('process_open_fds') <= valueOf('process_max_fds'));
  assert.ok(valueOf('process_start_time_seconds') > 1.5e9);
  assert.ok(valueOf('nodejs_eventloop_lag_seconds') >= 0);
});

test('reports a blocked event loop in the next text only', async (t) => {
  const metrics = new MetricRegistry();
  t.after(startProcessMetrics(metrics));
  // The first measurement only starts the clock.
  for (let round = 0; round < 5; round++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
    await setImmediate();
  }
  const blocked = readValues(metrics);
  assert.ok(blocked.get('nodejs_eventloop_lag_max_seconds')! > 0.03);
  assert.ok(blocked.get('nodejs_eventloop_lag_p99_seconds')! > 0.03);
  assert.equal(readValues(metrics).get('nodejs_eventloop_lag_max_seconds'), 0);
});

test('counts garbage collections', async (t) => {
  const metrics = new MetricRegistry();
  t.after(startProcessMetrics(metrics));
  const count = () =>
    [...readValues(metrics)].filter(([name]) => name.startsWith('nodejs_gc_duration_seconds_count{')).length;
  let garbage: unknown;
  for (let round = 0; round < 1000 && count() === 0; round++) {
    garbage = Array.from({ length: 100_000 }, (_, i) => ({ i }));
    await setImmediate();
  }
  assert.ok(garbage !== undefined && count() > 0);
});
