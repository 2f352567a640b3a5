/** Tests the cost of work that grows with its input. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { createEnvironment } from '#cel/environment.ts';
import { estimateRegexSize } from '#cel/evaluate/regex/regex-size.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { RE2JS } from 're2js';
import { CelList } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const environment = createEnvironment([standardLibrary, optionalLibrary]);

class Numbers extends CelList {
  override readonly size = 1000;
  override at(index: number): CelValue {
    return BigInt(index);
  }
}

test('appending in a fold costs one element per iteration', () => {
  const budget = new Budget(1_000_000);
  plan(parse('n.map(a, a)', environment.macros), environment)(() => new Numbers(), budget);
  assert.ok(1_000_000 - budget.left < 20_000, `took ${1_000_000 - budget.left}`);
});

test('appending repeatedly to the same list costs its length each time', () => {
  const budget = new Budget(10_000_000);
  plan(parse('[n.map(a, a)].map(l, n.map(a, l + [a]))', environment.macros), environment)(() => new Numbers(), budget);
  assert.ok(10_000_000 - budget.left > 900_000, `took ${10_000_000 - budget.left}`);
});

test('the program size of a regex is estimated before it is compiled', () => {
  const patterns = [
    'a',
    '[a-z]{1000}',
    '(?:(?:a?){30}){30}',
    '(a|b)*a(a|b){12}$',
    String.raw`\Qa{9}\E`,
    String.raw`[[:alpha:]\]]{3,9}`,
    '(x+x+)+y',
  ];
  for (const pattern of patterns) {
    const size = RE2JS.compile(pattern).programSize();
    const { program: estimate } = estimateRegexSize(pattern);
    assert.ok(estimate * 3 >= size && estimate <= size * 12 + 20, `${pattern}: ${estimate} for ${size}`);
  }
});
