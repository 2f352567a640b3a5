import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseYaml } from '#kube/yaml.ts';

describe('parses', () => {
  const cases: Record<string, { text: string; want: unknown }> = {
    'nested maps, lists and scalars': {
      text: 'a: {b: [1, 2.5, "x", ~, true]}\nc: |\n  text\n',
      want: { a: { b: [1, 2.5, 'x', null, true] }, c: 'text\n' },
    },
    'an empty text as null': { text: '', want: null },
    'aliases as the value of their anchor': {
      text: 'a: &a {x: 1}\nb: [*a, *a]\n',
      want: { a: { x: 1 }, b: [{ x: 1 }, { x: 1 }] },
    },
    'an alias as the latest value of its anchor': { text: '- &a 1\n- *a\n- &a 2\n- *a\n', want: [1, 1, 2, 2] },
    'keys as text': { text: '1: a\ntrue: b\n~: c\n1.5: d\n', want: { 1: 'a', true: 'b', '': 'c', 1.5: 'd' } },
    'keys that are aliases': { text: 'a: &k key\n*k : v\n', want: { a: 'key', key: 'v' } },
    'duplicate keys with the last value': { text: 'a: 1\na: 2\n', want: { a: 2 } },
    'a text without its keys __proto__': { text: '__proto__: {x: 1}\na: 1\n', want: { a: 1 } },
    'a merge key like any other key': {
      text: '%YAML 1.1\n---\na: &a {x: 1}\n<<: *a\n',
      want: { a: { x: 1 }, '<<': { x: 1 } },
    },
    'the deepest nesting that objects may have': { text: '['.repeat(256) + ']'.repeat(256), want: nested(256) },
  };
  for (const [name, { text, want }] of Object.entries(cases)) {
    test(name, () => assert.deepEqual(parseYaml(text), want));
  }
});

describe('refuses', () => {
  const deep = /^exceeded max depth of 300$/;
  const cases: Record<string, { text: string; why: RegExp }> = {
    'a syntax error, with its position': { text: 'a: 1\nb: [\n', why: /^Flow sequence .* at line 3, column 1$/ },
    'more than one document': { text: 'a: 1\n---\nb: 1\n', why: /^source contains multiple documents$/ },
    'an alias without an anchor': { text: 'a: *b\n', why: /^unknown anchor 'b' referenced$/ },
    'an alias inside its own anchor': { text: 'a: &a\n  b: *a\n', why: /^anchor 'a' value contains itself$/ },
    'a key that is a collection': { text: '? [a, b]\n: c\n', why: /^invalid map key: a map or a list$/ },
    'aliases that expand to too many values': {
      text: expandingAliases(),
      why: /^document contains excessive aliasing$/,
    },
    'lists nested too deeply': { text: '['.repeat(300_000), why: deep },
    'maps nested too deeply': { text: '{a: '.repeat(3000), why: deep },
    'items nested too deeply': { text: '- '.repeat(3000), why: deep },
    'keys nested too deeply': { text: '? '.repeat(3000), why: deep },
    'more tokens than can be read in reasonable time': { text: '- 1\n'.repeat(30_000), why: /^more than 30000 tokens/ },
    'an error at every character': { text: `[${','.repeat(20_000)}]`, why: /^Unexpected , .* line 1, column 3$/ },
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

function expandingAliases(): string {
  const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]'];
  for (let level = 1; level < 9; level++) {
    lines.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(',')}]`);
  }
  return lines.join('\n');
}
