import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultRuleFaults } from '#engine/registry/crd/default-rules.ts';
import type { Schema } from '#kube/schema.ts';

/** Some hundred thousand units to judge. */
function dear(): Schema {
  return {
    type: 'array',
    items: { type: 'integer' },
    default: Array.from({ length: 40 }, (_, i) => i),
    'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, self.all(z, x + y + z >= 0)))' }],
  };
}

function withFields(count: number): Schema {
  return { type: 'object', properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, dear()])) };
}

test('what defaults cost to judge is bounded for all of them together', () => {
  assert.deepEqual(defaultRuleFaults(withFields(1), 'root'), []);
  const [first, ...rest] = defaultRuleFaults(withFields(20), 'root');
  assert.match(first!.message, /running out of cost budget/);
  assert.ok(rest.length > 0, 'all that come after it are refused');
});
