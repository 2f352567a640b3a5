import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricRegistry } from '#runtime/metrics.ts';

test('the text is empty without metrics', () => assert.equal(new MetricRegistry().text(), ''));

test('sorts families and label sets, regardless of the order of counting', () => {
  const metrics = new MetricRegistry();
  const uses = metrics.counter('b_total', 'Uses.');
  uses.add({ use: 'vm', at: 'start' });
  uses.add({ at: 'start', use: 'vm' }, 2);
  uses.add({ use: 'restore', at: 'end' });
  let size = 3;
  metrics.gauge('a_size', 'Size.', () => size);
  size = 4;
  assert.deepEqual(metrics.text().split('\n'), [
    '# HELP a_size Size.',
    '# TYPE a_size gauge',
    'a_size 4',
    '# HELP b_total Uses.',
    '# TYPE b_total counter',
    'b_total{at="end",use="restore"} 1',
    'b_total{at="start",use="vm"} 3',
    '',
  ]);
});

test('a counter without labels has none in its line, and adding 0 shows it', () => {
  const metrics = new MetricRegistry();
  metrics.counter('x_total', 'X.').add({}, 0);
  assert.match(metrics.text(), /^x_total 0$/m);
});

test('the same name returns the same counter', () => {
  const metrics = new MetricRegistry();
  metrics.counter('x_total', 'X.').add();
  metrics.counter('x_total', 'X.').add();
  assert.match(metrics.text(), /^x_total 2$/m);
  assert.equal(metrics.text().match(/# TYPE/g)?.length, 1);
});

test('escapes values and help texts', () => {
  const metrics = new MetricRegistry();
  metrics.counter('x_total', 'one\ntwo \\').add({ of: 'a"b\\c\nd' });
  assert.deepEqual(metrics.text().split('\n'), [
    '# HELP x_total one\\ntwo \\\\',
    '# TYPE x_total counter',
    'x_total{of="a\\"b\\\\c\\nd"} 1',
    '',
  ]);
});

test('counts the labels beyond the limit as other', () => {
  const metrics = new MetricRegistry();
  const counter = metrics.counter('x_total', 'X.');
  for (let n = 0; n < 150; n++) counter.add({ of: `name-${n}` });
  counter.add({ of: 'name-0' });
  const lines = metrics.text().split('\n');
  assert.equal(lines.filter((line) => line.startsWith('x_total{')).length, 101);
  assert.ok(lines.includes('x_total{of="other"} 50'));
  assert.ok(lines.includes('x_total{of="name-0"} 2'));
});

const misuses: Record<string, (metrics: MetricRegistry) => void> = {
  'refuses to decrease a counter': (metrics) => metrics.counter('x_total', 'X.').add({}, -1),
  'refuses a gauge as a counter': (metrics) => {
    metrics.gauge('x', 'X.', () => 1);
    metrics.counter('x', 'X.');
  },
  'refuses a counter as a gauge': (metrics) => {
    metrics.counter('x', 'X.');
    metrics.gauge('x', 'X.', () => 1);
  },
  'refuses a metric name with spaces': (metrics) => metrics.counter('x y', 'X.'),
  'refuses a label name with spaces': (metrics) => metrics.counter('x', 'X.').add({ 'a b': '1' }),
};

for (const [name, misuse] of Object.entries(misuses)) {
  test(name, () => assert.throws(() => misuse(new MetricRegistry())));
}
