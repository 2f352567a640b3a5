import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { compile, type Program } from '#cel/compile.ts';
import { expressionEnvironment } from '#engine/expressions/expression-environment.ts';
import { precompute } from '#engine/expressions/constant-variable.ts';

const environment = expressionEnvironment({ params: false, authorizer: true });

function compiled(source: string): Program {
  const program = compile(source, environment);
  if ('failure' in program) throw new Error(program.failure);
  return program;
}

const cases: Record<string, { source: string; constant: boolean }> = {
  'a string is constant': { source: "string('kubevirt.io/vm-delete-protection')", constant: true },
  'a computation with constants is constant': { source: '1 + 2 == 3', constant: true },
  'an expression that uses the request is not constant': { source: 'request.name', constant: false },
  'an expression that uses the request is not constant even if its value is': {
    source: "has(object.a) ? 'x' : 'x'",
    constant: false,
  },
  'a list is not constant': { source: "['a', string('b')]", constant: false },
  'an error is not constant': { source: '1 / 0 == 1', constant: false },
  'an expensive expression is not constant': { source: "'a'.matches('a')", constant: false },
};
for (const [sentence, { source, constant }] of Object.entries(cases)) {
  test(sentence, () => {
    const program = compiled(source);
    assert.equal(precompute(program) !== program, constant);
  });
}

test('a constant has the same value and cost as before', () => {
  const program = compiled("string('a') + 'b'");
  const run = ({ evaluate }: Program) => {
    const budget = new Budget(1000);
    return [evaluate(() => undefined, budget), budget.left];
  };
  assert.deepEqual(run(precompute(program)), run(program));
});
