import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stringify } from 'yaml';
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
    'a directive of YAML 1.1 like one of YAML 1.2': { text: '%YAML 1.1\n---\na: yes\n', want: { a: 'yes' } },
    'booleans of YAML 1.2 only': {
      text: '[true, True, FALSE, yes, no, on, off, y, tRue]',
      want: [true, true, false, 'yes', 'no', 'on', 'off', 'y', 'tRue'],
    },
    nulls: { text: '[null, Null, NULL, ~, nULL, ""]', want: [null, null, null, null, 'nULL', ''] },
    'an absent value as null': { text: 'a:\nb: \n', want: { a: null, b: null } },
    integers: {
      text: '[010, 0o17, 0x1F, +1, -0x10, 0b11, 1_000, 12:30]',
      want: [10, 15, 31, 1, '-0x10', '0b11', '1_000', '12:30'],
    },
    floats: {
      text: '[1e3, 1., .5, 1.5e-3, .nan, -.inf, 1.2.3]',
      want: [1000, 1, 0.5, 0.0015, NaN, -Infinity, '1.2.3'],
    },
    'timestamps as strings': {
      text: '[2026-01-01, 2026-01-01T00:00:00Z, !!timestamp 2026-01-01]',
      want: ['2026-01-01', '2026-01-01T00:00:00Z', '2026-01-01'],
    },
    'quoted scalars as strings': {
      text: `["1", '2', "true", '~', "\\u00e9\\n", 'it''s']`,
      want: ['1', '2', 'true', '~', 'é\n', "it's"],
    },
    'core tags': {
      text: '[!!str 1, !!int "3", !!bool "true", !!null "~", !<tag:yaml.org,2002:int> "4", ! 5, !!int x]',
      want: ['1', 3, true, null, 4, '5', 'x'],
    },
    'other tags as if they were absent': {
      text: '[!!binary YQ==, !x 1, !x {a: 1}, !x [1], !!set {a, b}, !!omap [a: 1]]',
      want: ['YQ==', '1', { a: 1 }, [1], { a: null, b: null }, [{ a: 1 }]],
    },
    'a merge key without a directive': { text: 'a: &a {x: 1}\n<<: *a\n', want: { a: { x: 1 }, '<<': { x: 1 } } },
    'keys of every object': {
      text: 'constructor: 1\ntoString: {__proto__: 1, a: 2}\n',
      want: { constructor: 1, toString: { a: 2 } },
    },
    'literal and folded blocks': {
      text: 'a: |\n  x\n   y\n\n  z\n\nb: >-\n  x\n  y\n\n  z\nc: |+\n  x\n\nd: |2-\n   x\n',
      want: { a: 'x\n y\n\nz\n', b: 'x y\nz', c: 'x\n\n', d: ' x' },
    },
    'lines that end with CR and LF': { text: 'a: 1\r\nb: |\r\n  x\r\n', want: { a: 1, b: 'x\n' } },
    'JSON with tabs': { text: '{\n\t"a": [\n\t\t1\n\t]\n}', want: { a: [1] } },
    'a text with a byte order mark': { text: '\uFEFFa: 1\n', want: { a: 1 } },
    'one document between its marks': { text: '# first\n---\na: 1\n...\n# last\n', want: { a: 1 } },
    'a text of comments as null': { text: '# nothing\n', want: null },
    'closing brackets in the column of their key': {
      text: 'a:\n  b: {\n    c: 1 # d\n  }\n  e: [\n    1,\n  ]\nf: [\n]\n',
      want: { a: { b: { c: 1 }, e: [1] }, f: [] },
    },
    'brackets in scalars unchanged, also where others are in the column of their key': {
      text: 'a: {\n}\nb: |\n  {\n  }\nc: "[\n  ]"\n',
      want: { a: {}, b: '{\n}\n', c: '[ ]' },
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
    'a syntax error, with its position': {
      text: 'a: 1\nb: [\n',
      why: /^deficient indentation at line 3, column 1$/,
    },
    'an open list at the end': { text: 'a: 1\nb: [2', why: /^unexpected end of the stream .* line 2, column 6$/ },
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
    'aliases of a long text': {
      text: `a: &a ${'x'.repeat(500_000)}\nb: [*a, *a, *a]\n`,
      why: /^document contains excessive aliasing$/,
    },
    'aliases of a map with a long key': {
      text: `a: &a {${'x'.repeat(500_000)}: 1}\nb: [*a, *a, *a]\n`,
      why: /^document contains excessive aliasing$/,
    },
    'more values than memory should hold': {
      text: '[' + '1,'.repeat(500_000) + ']',
      why: /^more than 500000 line breaks/,
    },
    'an error at every character': { text: `[${','.repeat(20_000)}]`, why: /^expected the node .* line 1, column 2$/ },
    'a long tag, without repeating it': { text: `!${'x'.repeat(300_000)}^ a`, why: /^tag name .{1,300}$/ },
    'a null byte': { text: 'a: \0\n', why: /^null byte is not allowed in input at line 1, column 4$/ },
    'a bracket left of its key': { text: 'a:\n  b: [\n]\n', why: /^deficient indentation at line 3, column \d$/ },
  };
  for (const [name, { text, why }] of Object.entries(cases)) {
    test(name, () => assert.throws(() => parseYaml(text), { message: why }));
  }
});

describe('parses an ordinary list', () => {
  for (const bytes of [90_000, 2_000_000]) {
    test(`of ${bytes} bytes`, () => {
      const items = Array.from({ length: Math.ceil(bytes / 150) }, (_, index) => anItem(index));
      const text = stringify({ apiVersion: 'v1', kind: 'List', items });
      assert.ok(text.length >= bytes);
      assert.deepEqual(parseYaml(text), { apiVersion: 'v1', kind: 'List', items });
    });
  }
});

/** Returns an object of about 160 bytes in YAML, in many short lines. */
function anItem(index: number): unknown {
  const metadata = { name: `settings-${index}`, labels: { app: 'web', tier: 'a' }, finalizers: ['x/a', 'x/b'] };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1', b: 'true', c: 'x: y' } };
}

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
