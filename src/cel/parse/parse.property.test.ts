import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { standardMacros } from '#cel/parse/macros.ts';
import { optionalMacros } from '#cel/parse/optional-macros.ts';
import { parse } from '#cel/parse/parse.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

const macros = [...standardMacros, ...optionalMacros];
const WORDS =
  'a b.c has( .all(x, .map(x, .optMap(v, ) ( [ ] { } , : ? ! - + * / % == != < <= && || in true null 1 2u 3.5 "s" b"t" . .? `q`';
const soup = fc.array(fc.constantFrom(...WORDS.split(' ')), { maxLength: 40 }).map((words) => words.join(' '));

function check(source: string): void {
  try {
    parse(source, macros);
  } catch (error) {
    assert.ok(error instanceof CelSyntaxError, `${JSON.stringify(source)}: ${String(error)}`);
    assert.ok(error.problems.length > 0);
    for (const { at } of error.problems) assert.ok(at >= -1 && at <= source.length, `${at}`);
  }
}

test('the parser returns a tree or throws a CelSyntaxError with offsets inside the text', () => {
  fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string(), soup), check), { numRuns: 2000 });
});
