import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deviceMapText } from './device-map-text.ts';
import { subtractCounts, parseCounts } from './list-counts.ts';

const METRICS = [
  '# TYPE selfsame_host_list_bytes_total counter',
  'selfsame_host_list_bytes_total{node="node-1"} 1500',
  'selfsame_host_list_calls_total{node="node-1"} 3',
  'selfsame_host_list_calls_total{node="node-2"} 2',
  'selfsame_host_list_vms_total{node="node-1"} 40',
  'selfsame_host_list_vms_total{node="node-2"} 2',
].join('\n');

test('reads counts from the metrics and computes their difference', () => {
  const counts = parseCounts(METRICS);
  assert.deepEqual(counts, { calls: { 'node-1': 3, 'node-2': 2 }, vms: 42, bytes: 1500 });
  const before = { calls: { 'node-1': 1, 'node-2': 2 }, vms: 40, bytes: 1000 };
  assert.deepEqual(subtractCounts(before, counts), { calls: { 'node-1': 2 }, vms: 2, bytes: 500 });
  assert.deepEqual(parseCounts(''), { calls: {}, vms: 0, bytes: 0 });
});

test('the table shows the calls and whether they are within the bars', () => {
  const span = { seconds: 1, serverCpuMs: 20, nodesCpuMs: 12_000 };
  const start = { ...span, calls: { 'node-1': 3 }, vms: 10, bytes: 10_000 };
  const rest = { ...span, calls: {}, vms: 0, bytes: 0 };
  const change = { ...span, calls: { 'node-2': 1, 'node-1': 2 }, vms: 4, bytes: 4000 };
  const text = deviceMapText({ vms: 10, changed: 4, nodes: 2, start, rest, change });
  assert.match(text, /^at rest: 0 list calls; expected 0: ok$/m);
  assert.match(text, /^changed: at most 2 list calls to a node; expected 1: missed$/m);
  assert.match(text, /^4 changed\s+node-1 2, node-2 1\s+4\s+4\.0 KB\s+1\.0\s+20 ms\s+12\.0 s$/m);
  assert.match(text, /a complete list would be 5\.0 KB/);
});
