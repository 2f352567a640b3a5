import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/budget.ts';
import { compile, type Program } from '#cel/compile.ts';
import { expressionEnvironment } from '#engine/admission/expressions/expression-environment.ts';
import { withoutRepeating } from '#engine/admission/policies/constant-variable.ts';

const environment = expressionEnvironment({ params: false, authorizer: true });

function compiled(source: string): Program {
  const program = compile(source, environment);
  if ('failure' in program) throw new Error(program.failure);
  return program;
}

const cases: Record<string, { source: string; constant: boolean }> = {
  'a text is constant': { source: "string('kubevirt.io/vm-delete-protection')", constant: true },
  'so is what is computed from constants': { source: '1 + 2 == 3', constant: true },
  'what looks at the request is not': { source: 'request.name', constant: false },
  'even if it gives the same': { source: "has(object.a) ? 'x' : 'x'", constant: false },
  'a list is made anew': { source: "['a', string('b')]", constant: false },
  'a fault stays with the request that meets it': { source: '1 / 0 == 1', constant: false },
  'what is dear is left alone': { source: "'a'.matches('a')", constant: false },
};
for (const [sentence, { source, constant }] of Object.entries(cases)) {
  test(sentence, () => {
    const program = compiled(source);
    assert.equal(withoutRepeating(program) !== program, constant);
  });
}

test('a constant gives and costs what it gave and cost before', () => {
  const program = compiled("string('a') + 'b'");
  const run = ({ evaluate }: Program) => {
    const budget = new Budget(1000);
    return [evaluate(() => undefined, budget), budget.left];
  };
  assert.deepEqual(run(withoutRepeating(program)), run(program));
});
