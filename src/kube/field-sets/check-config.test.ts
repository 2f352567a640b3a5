import assert from 'node:assert/strict';
import test from 'node:test';
import { describeFaults, typeFaults } from './check-config.ts';
import { SAMPLE, spec } from './sample.fixture.ts';

const cases: Record<string, { value: unknown; want: string[] }> = {
  'a typed value': {
    value: {
      kind: 'A',
      labels: { a: 'b' },
      spec: {
        size: 1,
        target: '1',
        parts: [{ name: 'a', free: { x: [{}] } }],
        args: ['a', 'a'],
        tags: null,
        open: { x: 1 },
      },
    },
    want: [],
  },
  'an unknown field': { value: spec({ colour: 'red' }), want: ['.spec.colour: field not declared in schema'] },
  'nothing more is looked at beside an unknown field': {
    value: { spec: { colour: 'red', size: 'x' }, kind: 1 },
    want: [
      '.spec.colour: field not declared in schema',
      '.kind: expected string, got &value.valueUnstructured{Value:1}',
    ],
  },
  'a string for a number': {
    value: spec({ size: 'x' }),
    want: ['.spec.size: expected numeric (int or float), got string'],
  },
  'a string for a boolean': { value: spec({ on: 'yes' }), want: ['.spec.on: expected boolean, got &{yes}'] },
  'a map for a scalar': {
    value: { labels: { a: { b: 1 } } },
    want: ['.labels.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":1}}'],
  },
  'a list for a time': { value: spec({ time: [1] }), want: ['.spec.time: expected any scalar, got &{[1]}'] },
  'a map for a list': { value: spec({ args: { a: 1 } }), want: ['.spec.args: expected list, got &{map[a:1]}'] },
  'a list for a map': { value: { labels: ['a'] }, want: ['.labels: expected map, got &{[a]}'] },
  'a fault within an atomic list': {
    value: spec({ args: ['a', 1] }),
    want: ['.spec.args[1]: expected string, got &value.valueUnstructured{Value:1}'],
  },
  'doubles in a set': {
    value: spec({ tags: ['a', 'b', 'a'] }),
    want: ['.spec.tags: duplicate entries for key [="a"]'],
  },
  'doubles in a map list, found by a default': {
    value: spec({ ports: [{ port: 80, protocol: 'TCP' }, { port: 80 }] }),
    want: ['.spec.ports: duplicate entries for key [port=80,protocol="TCP"]'],
  },
  'a missing key': {
    value: spec({ parts: [{ size: 1 }] }),
    want: [
      '.spec.parts: element 0: associative list with keys has an element that omits key field "name" (and doesn\'t have default value)',
    ],
  },
  'a null item': {
    value: spec({ parts: [null] }),
    want: ['.spec.parts: element 0: associative list with keys may not have a null element'],
  },
  'a scalar in a map list': {
    value: spec({ parts: ['a'] }),
    want: ['.spec.parts: element 0: associative list with keys may not have non-map elements'],
  },
  'a map in a set': {
    value: spec({ tags: [{}] }),
    want: [".spec.tags: element 0: associative list without keys has an element that's a map type"],
  },
  'a list in a set': {
    value: spec({ tags: [[]] }),
    want: ['.spec.tags: element 0: not supported: associative list with lists as elements'],
  },
  'null in a set': {
    value: spec({ tags: ['a', null] }),
    want: [".spec.tags: element 1: associative list without keys has an element that's an explicit null"],
  },
  'a fault in an item': {
    value: spec({ parts: [{ name: 'a', size: true }] }),
    want: ['.spec.parts[name="a"].size: expected numeric (int or float), got bool'],
  },
  'a root of another type': { value: 'x', want: ['expected map, got &{x}'] },
};

for (const [sentence, { value, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(typeFaults(value, SAMPLE), want));
}

test('doubles may be allowed', () => {
  assert.deepEqual(typeFaults(spec({ tags: ['a', 'a'] }), SAMPLE, { allowDuplicates: true }), []);
});

test('faults are bounded', () => {
  assert.equal(typeFaults(spec({ args: Array.from({ length: 5000 }, () => 1) }), SAMPLE).length, 100);
});

test('one fault is told as it is, several as a list', () => {
  assert.equal(describeFaults(['.a: x']), '.a: x');
  assert.equal(describeFaults(['.a: x', '.b: y']), 'errors:\n  .a: x\n  .b: y');
});
