import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { compileJsonPath } from '#kube/selectors/jsonpath.ts';

const object = {
  metadata: { name: 'one', labels: { 'app.kubernetes.io/name': 'web', plain: 'x' } },
  spec: {
    replicas: 3,
    on: false,
    nothing: null,
    a: { b: { c: 1 } },
    list: [10, 20, 30, 40],
    ports: [
      { name: 'http', port: 80 },
      { name: 'https', port: 443 },
      { port: 8080, name: null },
    ],
  },
  status: {
    conditions: [
      { type: 'Paused', status: 'False' },
      { type: 'Ready', status: 'True', note: 'a) b', rank: 2 },
    ],
  },
};

const good: Record<string, unknown[]> = {
  '.metadata.name': ['one'],
  '{.metadata.name}': ['one'],
  ' { .metadata.name } ': ['one'],
  '$.metadata.name': ['one'],
  '.spec.replicas': [3],
  '.spec.on': [false],
  '.spec.nothing': [null],
  '.spec.none.below': [],
  '.spec.replicas.below': [],
  '.spec.toString': [],
  '.metadata.labels.app\\.kubernetes\\.io/name': ['web'],
  ".metadata.labels['app\\.kubernetes\\.io/name']": ['web'],
  // client-go reads a quoted key as a path.
  ".spec['a.b.c']": [1],
  ".metadata['name']": ['one'],
  '.': [object],
  $: [object],
  '.spec.list[0]': [10],
  '.spec.list[-1]': [40],
  '.spec.list[-2]': [30],
  '.spec.list[4]': [],
  '.spec.list[-5]': [],
  '.spec.list[*]': [10, 20, 30, 40],
  '.spec.list[1:3]': [20, 30],
  '.spec.list[2:]': [30, 40],
  '.spec.list[:-1]': [10, 20, 30],
  '.spec.list[::2]': [10, 30],
  '.spec.list[0,2]': [10, 30],
  ".metadata['name','labels.plain']": ['one', 'x'],
  '.spec.replicas[0]': [],
  '.spec.ports[*].name': ['http', 'https', null],
  '.spec.a.*': [{ c: 1 }],
  '.status.conditions[?(@.type=="Ready")].status': ['True'],
  ".status.conditions[?(@.type=='Ready')].status": ['True'],
  '.status.conditions[?( @.type == "Ready" )].status': ['True'],
  '.status.conditions[?(@.note=="a) b")].type': ['Ready'],
  '.status.conditions[?(@.type!="Ready")].type': ['Paused'],
  '.status.conditions[?(@.type=="None")].status': [],
  '.status.conditions[?(@.rank)].type': ['Ready'],
  '.spec.ports[?(@.port>80)].port': [443, 8080],
  '.spec.ports[?(@.port<=443)].port': [80, 443],
  '.spec.ports[?(@.port=="80")].port': [],
  '.spec.list[?(@>=30)]': [30, 40],
  '.spec.replicas[?(@.a==1)]': [],
  '..port': [80, 443, 8080],
  '.spec..c': [1],
  '..conditions[0].type': ['Paused'],
};

for (const [path, want] of Object.entries(good)) {
  test(`${path} finds ${want.length} values`, () => assert.deepEqual(compileJsonPath(path)(object), want));
}

const bad: Record<string, RegExp> = {
  '': /it is empty/,
  '{}': /it is empty/,
  'spec.replicas': /unrecognized identifier spec/,
  '.spec.': /a field name is missing/,
  '.spec[0': /unterminated array/,
  '.spec[]': /invalid array index/,
  '.spec[a]': /invalid array index a/,
  '.spec["a"]': /invalid array index "a"/,
  '.spec[-]': /invalid array index -/,
  '.spec[::0]': /step must be > 0/,
  '.spec]': /unrecognized character "]"/,
  '.spec{.a}': /unrecognized character "{"/,
  '.a[?(@.b=="c")': /unclosed array expect \]/,
  '.a[?(@.b=="c"': /unterminated filter/,
  '.a[?(@.b=~"c")]': /unrecognized/,
  '.a[?(@.b===1)]': /unrecognized filter operator ===/,
  '.a[?()]': /a filter has an empty side/,
  '.a....b': /multiple recursive descent/,
  [`.a${'[?(@'.repeat(50)}`]: /unterminated|unclosed|nested/,
  [`.${'a'.repeat(5000)}`]: /longer than/,
};

for (const [path, message] of Object.entries(bad)) {
  test(`refuses ${path.slice(0, 40)}`, () => assert.throws(() => compileJsonPath(path), { message }));
}

test('bounds the work of recursive descents over deep and wide objects', () => {
  let deep: unknown = { a: 1 };
  for (let i = 0; i < 5000; i++) deep = { a: deep };
  assert.deepEqual(compileJsonPath('..a..a..a')(deep), []);
  const wide = Array.from({ length: 200_000 }, () => ({ a: 1 }));
  assert.deepEqual(compileJsonPath('[*].a')(wide), []);
});

test('compiles any text or refuses it with a JsonPathError, and never fails on an object', () => {
  const part = fc.constantFrom(
    '.',
    '..',
    'spec',
    'a',
    '[',
    ']',
    '?(',
    ')',
    '@',
    '$',
    '*',
    "'",
    '"',
    '==',
    '1',
    '-',
    ':',
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 10 }), (parts) => {
      let run: ((value: unknown) => unknown[]) | undefined;
      try {
        run = compileJsonPath(`.${parts.join('')}`);
      } catch (error) {
        assert.equal((error as Error).name, 'JsonPathError');
      }
      if (run !== undefined) assert.ok(Array.isArray(run(object)));
    }),
    { numRuns: 2000 },
  );
});
