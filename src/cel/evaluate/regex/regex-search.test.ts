import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { Regex } from '#cel/evaluate/regex/regex-search.ts';
import { RE2JS } from 're2js';
import { SeededRandom } from '#test/support/seeded-random.ts';

const regex = (pattern: string) => new Regex(RE2JS.compile(pattern));

function costs(one: Regex, text: string, times = 1): number[] {
  return Array.from({ length: times }, () => {
    const budget = new Budget(1_000_000);
    one.isFoundIn(text, budget);
    return 1_000_000 - budget.left;
  });
}

test('a one-pass pattern is cheap from the first search', () => {
  assert.deepEqual(costs(regex('^(dev|prod)-[a-z0-9]+$'), 'dev-0123456789', 2), [62, 62]);
});

test('DFA states are charged when they are created and then cached', () => {
  const paid = costs(regex(String.raw`.*-[a-z]+\.example\.com`), 'a-b.example.com', 60);
  assert.ok(paid[0]! > 500, `${paid[0]}`);
  assert.equal(paid.at(-1), 35);
});

test('a search that could exceed the budget is not started', () => {
  const one = regex('(a|b)*a(a|b){12}$');
  const budget = new Budget(10_000);
  assert.throws(() => one.isFoundIn('ab'.repeat(1000), budget), CostLimitError);
  assert.equal(budget.left < 0, true);
});

test('a text that creates many states does not leave them in the cache', () => {
  const one = regex('(a|b)*a(a|b){12}$');
  const random = new SeededRandom(1);
  const text = Array.from({ length: 3000 }, () => (random.next() < 0.5 ? 'a' : 'b')).join('');
  const [first, second] = costs(one, text, 2);
  assert.ok(second! > first! / 2, `${first} ${second}`);
});

test('locating a match costs the whole program at each character', () => {
  assert.ok(regex('(a|b)*a(a|b){12}$').findCost(1000) > 40_000);
  assert.ok(regex('^[a-z]+$').findCost(1000) < 5000);
});

test('patterns of plain words use a lookup with the same results as a search', () => {
  const patterns = [
    '^(true|True)$',
    '^true$',
    '^(a||b)$',
    '^a|b$',
    '^(a|b)',
    'true',
    '^(?i:true)$',
    '^(a.|b)$',
    '^()$',
  ];
  const texts = ['true', 'True', 'TRUE', 'true\n', ' true', 'a', 'b', '', 'ab', 'xb', 'ax', 'truetrue'];
  for (const pattern of patterns) {
    const searched = RE2JS.compile(pattern);
    for (const text of texts) {
      const found = regex(pattern).isFoundIn(text, new Budget(100_000));
      assert.equal(found, searched.test(text), `${pattern} in ${JSON.stringify(text)}`);
    }
  }
  assert.deepEqual(costs(regex('^(true|True)$'), 'false', 2), [25, 25]);
});
