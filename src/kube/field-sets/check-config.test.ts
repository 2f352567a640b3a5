import assert from 'node:assert/strict';
import test from 'node:test';
import { describeTypeErrors, checkFieldTypes } from './check-config.ts';
import { SAMPLE, spec } from './testing/sample-set.ts';

const cases: Record<string, { value: unknown; want: string[] }> = {
  'accepts a well-typed value': {
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
  'refuses an unknown field': { value: spec({ colour: 'red' }), want: ['.spec.colour: field not declared in schema'] },
  'does not check the siblings of an unknown field': {
    value: { spec: { colour: 'red', size: 'x' }, kind: 1 },
    want: [
      '.spec.colour: field not declared in schema',
      '.kind: expected string, got &value.valueUnstructured{Value:1}',
    ],
  },
  'refuses a string for a number': {
    value: spec({ size: 'x' }),
    want: ['.spec.size: expected numeric (int or float), got string'],
  },
  'refuses a string for a boolean': { value: spec({ on: 'yes' }), want: ['.spec.on: expected boolean, got &{yes}'] },
  'refuses a map for a scalar': {
    value: { labels: { a: { b: 1 } } },
    want: ['.labels.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":1}}'],
  },
  'refuses a list for a time': { value: spec({ time: [1] }), want: ['.spec.time: expected any scalar, got &{[1]}'] },
  'refuses a map for a list': { value: spec({ args: { a: 1 } }), want: ['.spec.args: expected list, got &{map[a:1]}'] },
  'refuses a list for a map': { value: { labels: ['a'] }, want: ['.labels: expected map, got &{[a]}'] },
  'checks the items of an atomic list': {
    value: spec({ args: ['a', 1] }),
    want: ['.spec.args[1]: expected string, got &value.valueUnstructured{Value:1}'],
  },
  'refuses duplicates in a set': {
    value: spec({ tags: ['a', 'b', 'a'] }),
    want: ['.spec.tags: duplicate entries for key [="a"]'],
  },
  'refuses duplicates in a map list, also by a default': {
    value: spec({ ports: [{ port: 80, protocol: 'TCP' }, { port: 80 }] }),
    want: ['.spec.ports: duplicate entries for key [port=80,protocol="TCP"]'],
  },
  'refuses an item without its key': {
    value: spec({ parts: [{ size: 1 }] }),
    want: [
      '.spec.parts: element 0: associative list with keys has an element that omits key field "name" (and doesn\'t have default value)',
    ],
  },
  'refuses a null item': {
    value: spec({ parts: [null] }),
    want: ['.spec.parts: element 0: associative list with keys may not have a null element'],
  },
  'refuses a scalar in a map list': {
    value: spec({ parts: ['a'] }),
    want: ['.spec.parts: element 0: associative list with keys may not have non-map elements'],
  },
  'refuses a map in a set': {
    value: spec({ tags: [{}] }),
    want: [".spec.tags: element 0: associative list without keys has an element that's a map type"],
  },
  'refuses a list in a set': {
    value: spec({ tags: [[]] }),
    want: ['.spec.tags: element 0: not supported: associative list with lists as elements'],
  },
  'refuses null in a set': {
    value: spec({ tags: ['a', null] }),
    want: [".spec.tags: element 1: associative list without keys has an element that's an explicit null"],
  },
  'checks the fields of an item': {
    value: spec({ parts: [{ name: 'a', size: true }] }),
    want: ['.spec.parts[name="a"].size: expected numeric (int or float), got bool'],
  },
  'refuses a root of another type': { value: 'x', want: ['expected map, got &{x}'] },
};

for (const [sentence, { value, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(checkFieldTypes(value, SAMPLE), want));
}

test('accepts duplicates if they are allowed', () => {
  assert.deepEqual(checkFieldTypes(spec({ tags: ['a', 'a'] }), SAMPLE, { allowDuplicates: true }), []);
});

test('returns a limited number of errors', () => {
  assert.equal(checkFieldTypes(spec({ args: Array.from({ length: 5000 }, () => 1) }), SAMPLE).length, 100);
});

test('describes one error as it is and several as a list', () => {
  assert.equal(describeTypeErrors(['.a: x']), '.a: x');
  assert.equal(describeTypeErrors(['.a: x', '.b: y']), 'errors:\n  .a: x\n  .b: y');
});
