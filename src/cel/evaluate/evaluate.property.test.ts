import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Expr } from '#cel/ast.ts';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { createEnvironment } from '#cel/environment.ts';
import { adaptJson, toJson } from '#cel/evaluate/adapt-json.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { CelFault } from '#cel/value.ts';

const environment = createEnvironment([standardLibrary, optionalLibrary]);

/** Generates sources that parse but need not be meaningful: any function with any values. */
const { source } = fc.letrec<{ source: string }>((tie) => {
  const inner = tie('source');
  const names = [...environment.functions.keys()].filter((name) => /^[a-z.A-Z]+$/.test(name));
  const operator = fc.constantFrom('+', '-', '*', '/', '%', '==', '!=', '<', '<=', '>', '>=', 'in', '&&', '||');
  return {
    source: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(
        'x',
        'y',
        '1',
        '-9223372036854775808',
        '2u',
        '0.5',
        '0.0 / 0.0',
        '"a"',
        'b"b"',
        'true',
        'null',
        'int',
        '[]',
        '{}',
      ),
      fc.constantFrom(
        '"2020-01-01T00:00:00Z"',
        '"1h"',
        'timestamp(0)',
        'duration("1s")',
        '"UTC"',
        '"(a+)+$"',
        'optional.none()',
      ),
      fc.tuple(inner, operator, inner).map(([a, op, b]) => `(${a} ${op} ${b})`),
      fc
        .tuple(fc.constantFrom(...names), fc.array(inner, { maxLength: 3 }))
        .map(([f, args]) => `${f}(${args.join(', ')})`),
      fc
        .tuple(inner, fc.constantFrom(...names), fc.array(inner, { maxLength: 2 }))
        .map(([a, f, args]) => `(${a}).${f}(${args.join(', ')})`),
      fc
        .tuple(inner, fc.constantFrom('all', 'exists', 'exists_one', 'map', 'filter', 'optMap'), inner)
        .map(([a, f, b]) => `(${a}).${f}(x, ${b})`),
      fc.tuple(inner, inner, inner).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      fc.tuple(inner, inner).map(([a, b]) => `(${a})[${b}]`),
      fc.tuple(inner, inner).map(([a, b]) => `{${a}: ${b}, ?"k": optional.of(${b})}`),
      fc.array(inner, { maxLength: 3 }).map((elements) => `[${elements.join(', ')}]`),
      inner.map((a) => `has((${a}).f)`),
      inner.map((a) => `(${a}).?f`),
      inner.map((a) => `-(${a}) == !(${a})`),
    ),
  };
});

/** Returns undefined if a macro rejects its arguments; then there is nothing to evaluate. */
function tryParse(text: string): Expr | undefined {
  try {
    return parse(text, environment.macros);
  } catch {
    return undefined;
  }
}

test('an evaluation returns a value or a fault and throws only CostLimitError', () => {
  const property = fc.property(source, fc.jsonValue(), fc.jsonValue(), (text, x, y) => {
    const tree = tryParse(text);
    if (tree === undefined) return;
    const views = new Map([
      ['x', adaptJson(x)],
      ['y', adaptJson(y)],
    ]);
    try {
      const outcome = plan(tree, environment)((name) => views.get(name), new Budget(20_000));
      if (!(outcome instanceof CelFault)) toJson(outcome);
    } catch (error) {
      assert.ok(error instanceof CostLimitError, `${text}: ${String(error)}`);
    }
  });
  fc.assert(property, { numRuns: 3000 });
});

test('two views of the same JSON are equal and convert back to it', () => {
  const property = fc.property(fc.jsonValue(), (value) => {
    const plain: unknown = JSON.parse(JSON.stringify(value));
    assert.ok(areEqual(adaptJson(plain), adaptJson(plain), new Budget(1_000_000)));
    // Ints have no negative zero, and ints beyond 53 bits become strings.
    const safe = JSON.stringify(plain, (_key, part: unknown) => (Number.isSafeInteger(part) ? Number(part) + 0 : part));
    const back = JSON.stringify(toJson(adaptJson(plain)), (_key, part: unknown) =>
      typeof part === 'string' && /^-?\d{16,19}$/.test(part) ? Number(part) : part,
    );
    assert.equal(back, safe);
  });
  fc.assert(property);
});
