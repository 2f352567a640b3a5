import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkDefaultsAgainstRules } from '#engine/registry/crd/default-rules.ts';
import type { Schema } from '#kube/schema.ts';

/** A schema whose rule costs several hundred thousand units. */
function expensiveSchema(): Schema {
  return {
    type: 'array',
    items: { type: 'integer' },
    default: Array.from({ length: 40 }, (_, i) => i),
    'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, self.all(z, x + y + z >= 0)))' }],
  };
}

function withFields(count: number): Schema {
  return {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, expensiveSchema()])),
  };
}

test('the cost of checking defaults is bounded for all of them together', () => {
  assert.deepEqual(checkDefaultsAgainstRules(withFields(1), 'root'), []);
  const [first, ...rest] = checkDefaultsAgainstRules(withFields(20), 'root');
  assert.match(first!.message, /running out of cost budget/);
  assert.ok(rest.length > 0, 'all defaults after the limit are rejected');
});
