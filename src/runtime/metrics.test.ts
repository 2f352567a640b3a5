import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metrics } from '#runtime/metrics.ts';

test('nothing was asked for: nothing is told', () => assert.equal(new Metrics().text(), ''));

test('families and label sets are told in order, whatever the order of counting', () => {
  const metrics = new Metrics();
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

test('a counter without labels has none in its line, and 0 shows it before its time', () => {
  const metrics = new Metrics();
  metrics.counter('x_total', 'X.').add({}, 0);
  assert.match(metrics.text(), /^x_total 0$/m);
});

test('the same name gives the same counter', () => {
  const metrics = new Metrics();
  metrics.counter('x_total', 'X.').add();
  metrics.counter('x_total', 'X.').add();
  assert.match(metrics.text(), /^x_total 2$/m);
  assert.equal(metrics.text().match(/# TYPE/g)?.length, 1);
});

test('values and help texts cannot break out of their lines', () => {
  const metrics = new Metrics();
  metrics.counter('x_total', 'one\ntwo \\').add({ of: 'a"b\\c\nd' });
  assert.deepEqual(metrics.text().split('\n'), [
    '# HELP x_total one\\ntwo \\\\',
    '# TYPE x_total counter',
    'x_total{of="a\\"b\\\\c\\nd"} 1',
    '',
  ]);
});

test('what is counted of too many is counted as other', () => {
  const metrics = new Metrics();
  const counter = metrics.counter('x_total', 'X.');
  for (let n = 0; n < 150; n++) counter.add({ of: `name-${n}` });
  counter.add({ of: 'name-0' });
  const lines = metrics.text().split('\n');
  assert.equal(lines.filter((line) => line.startsWith('x_total{')).length, 101);
  assert.ok(lines.includes('x_total{of="other"} 50'));
  assert.ok(lines.includes('x_total{of="name-0"} 2'));
});

const faults: Record<string, (metrics: Metrics) => void> = {
  'a counter never falls': (metrics) => metrics.counter('x_total', 'X.').add({}, -1),
  'a gauge is no counter': (metrics) => {
    metrics.gauge('x', 'X.', () => 1);
    metrics.counter('x', 'X.');
  },
  'a counter is no gauge': (metrics) => {
    metrics.counter('x', 'X.');
    metrics.gauge('x', 'X.', () => 1);
  },
  'a name has no spaces': (metrics) => metrics.counter('x y', 'X.'),
  'nor has the name of a label': (metrics) => metrics.counter('x', 'X.').add({ 'a b': '1' }),
};

for (const [name, fault] of Object.entries(faults)) {
  test(name, () => assert.throws(() => fault(new Metrics())));
}
