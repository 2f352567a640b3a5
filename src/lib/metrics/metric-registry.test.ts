import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';

test('the text is empty without metrics', () => assert.equal(new MetricRegistry().text(), ''));

test('sorts families and label sets, regardless of the order of counting', () => {
  const metrics = new MetricRegistry();
  const uses = metrics.counter({ name: 'b_total', help: 'Uses.', labels: ['at', 'use'] });
  uses.add({ use: 'vm', at: 'start' });
  uses.add({ at: 'start', use: 'vm' }, 2);
  uses.add({ use: 'restore', at: 'end' });
  let size = 3;
  metrics.gaugeFunc({ name: 'a_size', help: 'Size.' }, () => size);
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
  const counter = metrics.counter({ name: 'x_total', help: 'X.' });
  assert.doesNotMatch(metrics.text(), /^x_total/m);
  counter.add({}, 0);
  assert.match(metrics.text(), /^x_total 0$/m);
});

test('a gauge rises and falls', () => {
  const metrics = new MetricRegistry();
  const open = metrics.gauge({ name: 'open', help: 'Open.', labels: ['of'] });
  open.add({ of: 'pods' }, 2);
  open.add({ of: 'pods' }, -1);
  assert.match(metrics.text(), /^open\{of="pods"\} 1$/m);
});

test('a histogram counts each value in all buckets with a bound that is not less', () => {
  const metrics = new MetricRegistry();
  const labelled = metrics.histogram({ name: 'h', help: 'H.', labels: ['of'], bounds: [0.5, 2] });
  for (const value of [0.5, 1, 2, 100]) labelled.observe({ of: 'a' }, value);
  metrics.histogram({ name: 'i', help: 'I.', bounds: [1] }).observe({}, 3);
  assert.deepEqual(
    metrics
      .text()
      .split('\n')
      .filter((line) => !line.startsWith('# HELP')),
    [
      '# TYPE h histogram',
      'h_bucket{of="a",le="0.5"} 1',
      'h_bucket{of="a",le="2"} 3',
      'h_bucket{of="a",le="+Inf"} 4',
      'h_sum{of="a"} 103.5',
      'h_count{of="a"} 4',
      '# TYPE i histogram',
      'i_bucket{le="1"} 0',
      'i_bucket{le="+Inf"} 1',
      'i_sum 3',
      'i_count 1',
      '',
    ],
  );
});

test('the same name returns the same counter, and a function is replaced', () => {
  const metrics = new MetricRegistry();
  metrics.counter({ name: 'x_total', help: 'X.' }).add({});
  metrics.counter({ name: 'x_total', help: 'X.' }).add({});
  metrics.counterFunc({ name: 'y_total', help: 'Y.' }, () => 1);
  metrics.counterFunc({ name: 'y_total', help: 'Y.' }, () => 5);
  assert.match(metrics.text(), /^x_total 2$/m);
  assert.match(metrics.text(), /^y_total 5$/m);
  assert.equal(metrics.text().match(/# TYPE/g)?.length, 2);
});

test('escapes values and help texts', () => {
  const metrics = new MetricRegistry();
  metrics.counter({ name: 'x_total', help: 'one\ntwo \\ "', labels: ['of'] }).add({ of: 'a"b\\c\nd' });
  assert.deepEqual(metrics.text().split('\n'), [
    '# HELP x_total one\\ntwo \\\\ "',
    '# TYPE x_total counter',
    'x_total{of="a\\"b\\\\c\\nd"} 1',
    '',
  ]);
});

test('counts the labels beyond the limit as other', () => {
  const metrics = new MetricRegistry();
  const counter = metrics.counter({ name: 'x_total', help: 'X.', labels: ['of'] });
  for (let n = 0; n < 150; n++) counter.add({ of: `name-${n}` });
  counter.add({ of: 'name-0' });
  const lines = metrics.text().split('\n');
  assert.equal(lines.filter((line) => line.startsWith('x_total{')).length, 101);
  assert.ok(lines.includes('x_total{of="other"} 50'));
  assert.ok(lines.includes('x_total{of="name-0"} 2'));
});

test('keeps the values of bounded labels beyond the limit, and a gauge beyond it returns to 0', () => {
  const metrics = new MetricRegistry();
  const gauge = metrics.gauge({ name: 'x', help: 'X.', labels: ['of', 'how'], openLabels: ['of'], maxLabelSets: 1 });
  gauge.add({ of: 'a', how: 'well' }, 1);
  gauge.add({ of: 'b', how: 'well' }, 1);
  gauge.add({ of: 'c', how: 'badly' }, 1);
  gauge.add({ of: 'b', how: 'well' }, -1);
  const lines = metrics.text().split('\n').slice(2, -1);
  assert.deepEqual(lines, ['x{of="a",how="well"} 1', 'x{of="other",how="badly"} 1', 'x{of="other",how="well"} 0']);
});

test('calls updates before each text until they end', () => {
  const metrics = new MetricRegistry();
  let updates = 0;
  metrics.gaugeFunc({ name: 'x', help: 'X.' }, () => updates);
  const end = metrics.onText(() => updates++);
  assert.match(metrics.text(), /^x 1$/m);
  assert.match(metrics.text(), /^x 2$/m);
  end();
  assert.match(metrics.text(), /^x 2$/m);
});

const x = { name: 'x', help: 'X.' };
const misuses: Record<string, (metrics: MetricRegistry) => void> = {
  'refuses to decrease a counter': (metrics) => metrics.counter(x).add({}, -1),
  'refuses a gauge as a counter': (metrics) => {
    metrics.gaugeFunc(x, () => 1);
    metrics.counter(x);
  },
  'refuses a counter as a gauge': (metrics) => {
    metrics.counter(x);
    metrics.gauge(x);
  },
  'refuses a function for a counted metric': (metrics) => {
    metrics.counter(x);
    metrics.counterFunc(x, () => 1);
  },
  'refuses to count a metric of a function': (metrics) => {
    metrics.counterFunc(x, () => 1);
    metrics.counter(x);
  },
  'refuses a metric name with spaces': (metrics) => metrics.counter({ name: 'x y', help: 'X.' }),
  'refuses a label name with spaces': (metrics) => metrics.counter({ ...x, labels: ['a b'] }),
};

for (const [name, misuse] of Object.entries(misuses)) {
  test(name, () => assert.throws(() => misuse(new MetricRegistry()), /Invariant/));
}
