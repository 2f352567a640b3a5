/**
 * Expressions that try to hold the process. Each must be stopped by its budget, after a number of steps that the budget
 * bounds: an element that is looked at costs a unit or more, and so does every ten characters. How long a unit takes
 * was measured: a million of them are below 50 ms of CPU for every one of these.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/budget.ts';
import { createEnvironment } from '#cel/environment.ts';
import { estimateSize } from '#cel/evaluate/regex-size.ts';
import { plan } from '#cel/evaluate/plan.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { RE2JS } from 're2js';
import { CelList } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const environment = createEnvironment([standardLibrary, optionalLibrary]);
const UNITS = 200_000;

/** Counts how often it is looked at. */
class Numbers extends CelList {
  looks = 0;
  override readonly size = 1000;
  override at(index: number): CelValue {
    this.looks += 1;
    return BigInt(index);
  }
}

const doubled = (start: string, operation: (name: string) => string, times: number) =>
  start + Array.from({ length: times }, (_, level) => `.map(x${level}, ${operation(`x${level}`)})`).join('');
const shared = doubled('[1]', (name) => `[${name}, ${name}]`, 60);

const hostile: Record<string, string> = {
  'folds within folds': 'n.all(a, n.all(b, n.all(c, a + b + c >= 0)))',
  'lists of lists': 'n.map(a, n.map(b, n.map(c, a * b * c))).size() > 0',
  'filters of filters': 'n.filter(a, n.filter(b, a > b).size() >= 0).size() > 0',
  'strings that double': doubled("['x']", (name) => `${name} + ${name}`, 60),
  'bytes that double': doubled("[b'x']", (name) => `${name} + ${name}`, 60),
  'lists that double': doubled('[[1]]', (name) => `${name} + ${name}`, 60),
  'equality of shared parts': `${shared} == ${shared}`,
  'a search for shared parts': `${shared} in [${shared}]`,
  'searches in lists': 'n.all(a, !((a + 1000) in n))',
  'a long text, searched again and again': `${doubled("['ab']", (name) => `${name} + ${name}`, 14)}.all(t, n.all(a, n.all(b, !t.contains('ba' + t))))`,
  'a long text, compared again and again': `${doubled("['ab']", (name) => `${name} + ${name}`, 14)}.all(t, n.all(a, t + 'a' < t + 'b'))`,
  'a long text, measured again and again': `${doubled("['ab']", (name) => `${name} + ${name}`, 14)}.all(t, n.all(a, t.size() > 0))`,
  'a regex with many states': `${doubled("['ab']", (name) => `${name} + ${name}`, 12)}.all(t, n.all(a, t.matches('(a|b)*a(a|b){12}$') || true))`,
  'a regex that is large': "n.all(a, 'aaaaaaaaaaaaaaaaaaaa'.matches('^(?:.?){900}$'))",
  'a new regex each time': "n.all(a, 'a'.matches(string(a) + '[a-z]{500}') || true)",
  'time zones': "n.all(a, n.all(b, timestamp(a).getHours('Europe/Berlin') >= 0))",
  'times read and written': "n.all(a, n.all(b, string(timestamp('2020-01-01T00:00:00.5+01:00')) != string(a)))",
  'maps made again and again': "n.all(a, n.all(b, {'a': a, 'b': [b]}.a == a))",
  'optional values': 'n.all(a, n.all(b, optional.of(a).optMap(x, x + b).hasValue()))',
  'faults all the way': "n.all(a, n.exists(b, a / 0 == b || a + 'x' == 'y' || {}.missing == 1))",
};
for (const [name, source] of Object.entries(hostile)) {
  test(`stops ${name}`, () => {
    const numbers = new Numbers();
    const program = plan(parse(source, environment.macros), environment);
    assert.throws(() => program(() => numbers, new Budget(UNITS)), CostLimitError);
    assert.ok(numbers.looks <= UNITS, `looked ${numbers.looks} times`);
  });
}

test('a list that grows by one in a fold costs what it grows by', () => {
  const budget = new Budget(1_000_000);
  plan(parse('n.map(a, a)', environment.macros), environment)(() => new Numbers(), budget);
  assert.ok(1_000_000 - budget.left < 20_000, `took ${1_000_000 - budget.left}`);
});

test('but appending to one list again and again costs its length each time', () => {
  const budget = new Budget(10_000_000);
  plan(parse('[n.map(a, a)].map(l, n.map(a, l + [a]))', environment.macros), environment)(() => new Numbers(), budget);
  assert.ok(10_000_000 - budget.left > 900_000, `took ${10_000_000 - budget.left}`);
});

test('the size of a regex is known before it is compiled', () => {
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
    const { program: estimate } = estimateSize(pattern);
    assert.ok(estimate * 3 >= size && estimate <= size * 12 + 20, `${pattern}: ${estimate} for ${size}`);
  }
});
