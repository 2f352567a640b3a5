import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseYaml } from '#kube/yaml.ts';

describe('the value of a YAML text', () => {
  const cases: Record<string, { text: string; want: unknown }> = {
    'is that of nested maps, lists and scalars': {
      text: 'a: {b: [1, 2.5, "x", ~, true]}\nc: |\n  text\n',
      want: { a: { b: [1, 2.5, 'x', null, true] }, c: 'text\n' },
    },
    'is null for an empty text': { text: '', want: null },
    'has what an alias stands for': {
      text: 'a: &a {x: 1}\nb: [*a, *a]\n',
      want: { a: { x: 1 }, b: [{ x: 1 }, { x: 1 }] },
    },
    'has the latest meaning of an anchor': { text: '- &a 1\n- *a\n- &a 2\n- *a\n', want: [1, 1, 2, 2] },
    'has keys as text': { text: '1: a\ntrue: b\n~: c\n1.5: d\n', want: { 1: 'a', true: 'b', '': 'c', 1.5: 'd' } },
    'has keys that are aliases': { text: 'a: &k key\n*k : v\n', want: { a: 'key', key: 'v' } },
    'has the last of fields that are there twice': { text: 'a: 1\na: 2\n', want: { a: 2 } },
    'drops prototypes': { text: '__proto__: {x: 1}\na: 1\n', want: { a: 1 } },
    'takes a key that merges for any other': {
      text: '%YAML 1.1\n---\na: &a {x: 1}\n<<: *a\n',
      want: { a: { x: 1 }, '<<': { x: 1 } },
    },
    'is nested as deeply as an object may be': { text: '['.repeat(256) + ']'.repeat(256), want: nested(256) },
  };
  for (const [name, { text, want }] of Object.entries(cases)) {
    test(name, () => assert.deepEqual(parseYaml(text), want));
  }
});

describe('a YAML text is refused', () => {
  const deep = /^exceeded max depth of 300$/;
  const cases: Record<string, { text: string; why: RegExp }> = {
    'with its first fault and where that is': { text: 'a: 1\nb: [\n', why: /^Flow sequence .* at line 3, column 1$/ },
    'with more than one document': { text: 'a: 1\n---\nb: 1\n', why: /^source contains multiple documents$/ },
    'with an alias of nothing': { text: 'a: *b\n', why: /^unknown anchor 'b' referenced$/ },
    'with an alias of what it is in': { text: 'a: &a\n  b: *a\n', why: /^anchor 'a' value contains itself$/ },
    'with a key that is a collection': { text: '? [a, b]\n: c\n', why: /^invalid map key: a map or a list$/ },
    'with aliases that stand for far too much': { text: laughs(), why: /^document contains excessive aliasing$/ },
    'with lists in lists without end': { text: '['.repeat(300_000), why: deep },
    'with maps in maps without end': { text: '{a: '.repeat(3000), why: deep },
    'with items in items without end': { text: '- '.repeat(3000), why: deep },
    'with keys in keys without end': { text: '? '.repeat(3000), why: deep },
    'with more than would be read in good time': { text: '- 1\n'.repeat(30_000), why: /^more than 30000 words / },
    'with a fault at every character': { text: `[${','.repeat(20_000)}]`, why: /^Unexpected , .* line 1, column 3$/ },
  };
  for (const [name, { text, why }] of Object.entries(cases)) {
    test(name, () => assert.throws(() => parseYaml(text), { message: why }));
  }
});

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

function laughs(): string {
  const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]'];
  for (let level = 1; level < 9; level++) {
    lines.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(',')}]`);
  }
  return lines.join('\n');
}
