import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { compile } from '#cel/compile.ts';
import type { CompileOptions } from '#cel/compile.ts';
import { createEnvironment } from '#cel/environment.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { BOOL, DYN, INT, NULL, STRING, listOf } from '#cel/type.ts';

const environment = createEnvironment([standardLibrary, optionalLibrary], { object: DYN, n: INT });

const failures: Record<string, { source: string; options?: CompileOptions; about?: string; want: string }> = {
  'a syntax error, in the words of kube-apiserver': {
    source: 'object.spec.(',
    want: "ERROR: <input>:1:13: Syntax error: no viable alternative at input '.('\n | object.spec.(\n | ............^",
  },
  'an undeclared name': {
    source: 'foo == 1',
    want: "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
  },
  'several problems': {
    source: "foo == 1 &&\n\t1 + 'ü' == bar",
    want: [
      "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')",
      ' | foo == 1 &&',
      ' | ^',
      "ERROR: <input>:2:4: found no matching overload for '_+_' applied to '(int, string)'",
      " |  1 + 'ü' == bar",
      ' | ...^',
      "ERROR: <input>:2:13: undeclared reference to 'bar' (in container '')",
      " |  1 + 'ü' == bar",
      ' | ......\uff0e.....^',
    ].join('\n'),
  },
  'a literal that can only fail': {
    source: "duration('x') == duration('1h')",
    want: "ERROR: <input>:1:10: invalid duration argument\n | duration('x') == duration('1h')\n | .........^",
  },
  'a result of the wrong type': {
    source: 'n + 1',
    options: { expect: [BOOL] },
    about: 'result',
    want: 'must evaluate to bool but got int',
  },
  'a result that may be anything': {
    source: 'object.spec.paused',
    options: { expect: [BOOL] },
    about: 'result',
    want: 'must evaluate to bool but got dyn',
  },
  'a result that is none of several': {
    source: '[n]',
    options: { expect: [STRING, NULL] },
    about: 'result',
    want: 'must evaluate to one of [string null_type] but got list(int)',
  },
};

for (const [sentence, { source, options, about = 'source', want }] of Object.entries(failures)) {
  test(`compile rejects: ${sentence}`, () => {
    assert.deepEqual(compile(source, environment, options), { failure: want, about });
  });
}

const accepted: Record<string, { source: string; options: CompileOptions }> = {
  'the type that is expected': { source: 'n > 1', options: { expect: [BOOL] } },
  'one of several types': { source: 'null', options: { expect: [STRING, NULL] } },
  'a type with parts': { source: '[n]', options: { expect: [listOf(INT)] } },
  'anything where dyn is expected': { source: 'n', options: { expect: [DYN] } },
  'mixed lists where they are allowed': { source: '[1, "a"]', options: { mixedLiterals: true } },
};

for (const [sentence, { source, options }] of Object.entries(accepted)) {
  test(`compile accepts: ${sentence}`, () => {
    const program = compile(source, environment, options);
    assert.ok('evaluate' in program, JSON.stringify(program));
  });
}

test('a program reads the variables that it names', () => {
  const program = compile('n > 1 ? n + 1 : 0', environment);
  assert.ok('evaluate' in program);
  const asked: string[] = [];
  const result = program.evaluate((name) => {
    asked.push(name);
    return 41n;
  }, new Budget(1000));
  assert.equal(result, 42n);
  assert.deepEqual([...new Set(asked)], ['n']);
  assert.deepEqual([program.source, program.type], ['n > 1 ? n + 1 : 0', INT]);
});
