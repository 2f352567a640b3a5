import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { createEnvironment } from '#cel/environment.ts';
import { toJson } from '#cel/evaluate/adapt-json.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import type { Library } from '#cel/library.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { INT, STRING, opaque } from '#cel/type.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';

function evaluate(source: string, ...more: Library[]): unknown {
  const environment = createEnvironment([standardLibrary, optionalLibrary, ...more]);
  const outcome = plan(parse(source, environment.macros), environment)(() => undefined, new Budget(100_000));
  return outcome instanceof CelFault ? `fault: ${outcome.message}` : toJson(outcome);
}

test('overload names are unique', () => {
  const ids = [standardLibrary, optionalLibrary].flatMap(({ functions = {} }) =>
    Object.values(functions).flatMap((overloads) => overloads.map(({ id }) => id)),
  );
  assert.ok(ids.length > 150);
  assert.deepEqual(ids.toSorted(), [...new Set(ids)].toSorted());
});

const zones: Record<string, readonly [source: string, want: unknown]> = {
  'UTC without a zone': ['timestamp("2024-07-01T23:30:00Z").getHours()', 23],
  'a zone by its name, in summer': ['timestamp("2024-07-01T23:30:00Z").getDate("Europe/Berlin")', 2],
  'a zone by its name, in winter': ['timestamp("2024-01-01T23:30:00Z").getHours("Europe/Berlin")', 0],
  'an offset': ['timestamp("2024-07-01T23:30:00Z").getMinutes("-02:45")', 45],
  'an offset without sign': ['timestamp("2024-07-01T23:30:00Z").getHours("01:00")', 0],
  'the first day of the year': ['timestamp("2024-01-01T00:00:00Z").getDayOfYear()', 0],
  'the last day of the year': ['timestamp("2024-12-31T23:59:59Z").getDayOfYear()', 365],
  'years far in the past': ['timestamp("0001-01-01T12:00:00Z").getFullYear("America/New_York")', 1],
  'an unknown zone': ['timestamp(0).getHours("Mars/Olympus")', 'fault: unknown time zone Mars/Olympus'],
  'an invalid offset': ['timestamp(0).getHours("a:b")', 'fault: strconv.Atoi: parsing "a": invalid syntax'],
};
for (const [name, [source, want]] of Object.entries(zones)) {
  test(`returns the time for ${name}`, () => assert.deepEqual(evaluate(source), want));
}

test('another library adds overloads to an operator and to a function', () => {
  class Money extends CelOpaque {
    override readonly type = opaque('test.Money');
    readonly cents: bigint;
    constructor(cents: bigint) {
      super();
      this.cents = cents;
    }
    override equals(other: CelOpaque): boolean {
      return other instanceof Money && other.cents === this.cents;
    }
  }
  const type = opaque('test.Money');
  const money: Library = {
    functions: {
      'test.money': [
        { id: 'money', member: false, args: [INT], result: type, call: ([cents]) => new Money(cents as bigint) },
      ],
      '_+_': [
        {
          id: 'add_money',
          member: false,
          args: [type, type],
          result: type,
          call: ([a, b]) => new Money((a as Money).cents + (b as Money).cents),
        },
      ],
      string: [
        {
          id: 'money_to_string',
          member: false,
          args: [type],
          result: STRING,
          call: ([a]) => `${(a as Money).cents} ct`,
        },
      ],
    },
  };
  assert.equal(evaluate('string(test.money(1) + test.money(2))', money), '3 ct');
  assert.equal(evaluate('test.money(1) == test.money(1) && test.money(1) != test.money(2)', money), true);
  assert.equal(evaluate('test.money(1) + 1', money), 'fault: no such overload');
});
