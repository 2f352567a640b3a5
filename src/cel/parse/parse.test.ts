import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tests as parsing } from '@bufbuild/cel-spec/testdata/parsing.js';
import type { SerializedIncrementalTestSuite } from '@bufbuild/cel-spec/testdata/tests.js';
import type { Expr } from '#cel/ast.ts';
import { standardMacros } from '#cel/parse/macros.ts';
import { optionalMacros } from '#cel/parse/optional-macros.ts';
import { parse } from '#cel/parse/parse.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

const macros = [...standardMacros, ...optionalMacros];

/** Returns `offset: message` for each problem. */
function problems(source: string): string[] {
  try {
    parse(source, macros);
    return [];
  } catch (error) {
    assert.ok(error instanceof CelSyntaxError, `${source}: ${String(error)}`);
    return error.problems.map(({ at, message }) => `${at}: ${message}`);
  }
}

/** Formats the tree as calls in prefix form. */
function written(expr: Expr): string {
  switch (expr.kind) {
    case 'const':
      return typeof expr.value === 'object'
        ? 'object'
        : typeof expr.value === 'string'
          ? `"${expr.value}"`
          : `${expr.value}`;
    case 'ident':
      return expr.name;
    case 'select':
      return `${expr.test ? 'has ' : ''}${written(expr.operand)}.${expr.field}`;
    case 'call': {
      const args = [...(expr.target === undefined ? [] : [expr.target]), ...expr.args];
      return `${expr.target === undefined ? '' : '.'}${expr.name}(${args.map(written).join(', ')})`;
    }
    case 'list':
      return `[${expr.elements.map(({ value, optional }) => (optional ? '?' : '') + written(value)).join(', ')}]`;
    case 'map':
      return `{${expr.entries.map((entry) => `${entry.optional ? '?' : ''}${written(entry.key)}: ${written(entry.value)}`).join(', ')}}`;
    case 'message':
      return `${expr.name}{${expr.entries.map(({ field, value }) => `${field}: ${written(value)}`).join(', ')}}`;
    case 'fold':
      return `fold ${expr.variable} in ${written(expr.range)}`;
  }
}

const START =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

const refused: Record<string, readonly [source: string, ...problems: string[]]> = {
  'a dot with nothing to select': ['object.spec.(', "12: Syntax error: no viable alternative at input '.('"],
  'a keyword used as a name': ['self.true == 1', "5: Syntax error: mismatched input 'true' expecting IDENTIFIER"],
  'an unclosed list': ['object.x in [1, 2,', "18: Syntax error: missing ']' at '<EOF>'"],
  'an unclosed call': ["'asdf'.contains('x'", "19: Syntax error: missing ')' at '<EOF>'"],
  'two unclosed calls': ['f(g(1', "5: Syntax error: mismatched input '<EOF>' expecting ')'"],
  'a single equals sign': [
    "request.user = 'test'",
    "13: Syntax error: token recognition error at: '= '",
    "15: Syntax error: extraneous input ''test'' expecting <EOF>",
  ],
  'an operator after a field': ["a.k! == '1'", "3: Syntax error: mismatched input '!' expecting <EOF>"],
  'an empty source': ['', `0: Syntax error: mismatched input '<EOF>' expecting ${START}`],
  'an operator without its right side': ['1 +', `3: Syntax error: mismatched input '<EOF>' expecting ${START}`],
  'a reserved word': ['namespace == 1', '0: reserved identifier: namespace'],
  'has() of an expression that is not a field': ['has(m)', '4: invalid argument to has() macro'],
  'has() of has()': ['has(has(a.b))', '7: invalid argument to has() macro'],
  'an invalid macro variable': ['m.filter(a.b, false)', '10: argument is not an identifier'],
  'an invalid optMap variable': ['m.optMap(1, 2)', '9: optMap() variable name must be a simple identifier'],
  'a negated negation of something else': [
    '!-a',
    "1: Syntax error: mismatched input '-' expecting " + START.replace(", '!'", ''),
  ],
  'an int out of range': ['9223372036854775808', '0: invalid int literal'],
  'half of a surrogate pair': [String.raw`'\ud83d'`, '0: invalid unicode code point'],
  'a code point beyond the last': [String.raw`'\U00110000'`, '0: unable to unescape string'],
  'a unicode escape in bytes': [String.raw`b'\u00e9'`, '0: unable to unescape string'],
  'brackets nested too deep': ['['.repeat(300), '-1: expression recursion limit exceeded: 250'],
  'a chain that is too long': ['a' + '.b'.repeat(300), '-1: max recursion depth exceeded'],
  'a sum that is too long': ['1' + '+1'.repeat(300), '-1: max recursion depth exceeded'],
  'chains in brackets nested too deep': [
    '('.repeat(5) + 'a' + `${'.b'.repeat(200)})`.repeat(5),
    '-1: max recursion depth exceeded',
  ],
  'macros nested too deep': ['[1].map(x, '.repeat(220) + '1' + ')'.repeat(220), '-1: max recursion depth exceeded'],
  'a source that is too long': [
    'a'.repeat(10_001),
    '-1: expression code point size exceeds limit: size: 10001, limit 10000',
  ],
};
for (const [name, [source, ...want]] of Object.entries(refused)) {
  test(`rejects ${name}`, () => assert.deepEqual(problems(source), want));
}

const trees: Record<string, readonly [source: string, tree: string]> = {
  'products bind before sums, sums before relations': ['1 + 2 * 3 == a', '_==_(_+_(1, _*_(2, 3)), a)'],
  'relations bind before logic': ['a || b && c == d', '_||_(a, _&&_(b, _==_(c, d)))'],
  'operators of the same precedence are left-associative': ['1 - 2 - 3', '_-_(_-_(1, 2), 3)'],
  'conditionals are right-associative': ['a ? b : c ? d : e', '_?_:_(a, b, _?_:_(c, d, e))'],
  'long logic is balanced': ['a || b || c || d', '_||_(_||_(a, b), _||_(c, d))'],
  'the smallest int has its sign': ['-9223372036854775808', '-9223372036854775808'],
  'two signs cancel out': ['--a', 'a'],
  'three signs do not cancel out': ['!!!a', '!_(a)'],
  'a sign before an expression is a call': ['-(1)', '-_(1)'],
  'chained members, calls and indices': ['a.b(c)[0].d', '_[_](.b(a, c), 0).d'],
  'a leading dot stays with the name': ['.a.b', '.a.b'],
  'reserved words are fields': ['a.namespace', 'a.namespace'],
  'quoted fields': ['a.`b-c/d`', 'a.b-c/d'],
  'optional fields, indices and elements': ['[?a.?b, a[?0], {?"k": c}]', '[?_?._(a, "b"), _[?_](a, 0), {?"k": c}]'],
  'a trailing comma': ['[1, 2,] + [,]', '_+_([1, 2], [])'],
  messages: ['a.B{c: 1}', 'a.B{c: 1}'],
  escapes: [String.raw`"\x41\u00e9\101\n" + r"\n" + '''a'b'''`, '_+_(_+_("AéA\n", "\\n"), "a\'b")'],
  'comments and newlines': ['1 + // one\n 2', '_+_(1, 2)'],
  'has of a field': ['has(a.b.c)', 'has a.b.c'],
  'a call with another number of arguments is not a macro': ['a.map(x)', '.map(a, x)'],
  macros: ['a.b.all(x, x > 0)', 'fold x in a.b'],
};
for (const [name, [source, want]] of Object.entries(trees)) {
  test(`parses ${name}`, () => assert.equal(written(parse(source, macros)), want));
}

test('a thousand logical terms parse to a shallow tree', () => {
  assert.deepEqual(problems(Array.from({ length: 1000 }, () => 'a').join(' || ')), []);
});

test('optMap uses its target once, so that long chains stay small', () => {
  assert.deepEqual(problems(`a${'.optMap(x, x)'.repeat(100)}`), []);
});

test('offsets are those of cel-go: the operator, the dot, the bracket', () => {
  const places: Record<string, number> = {
    'a + b': 2,
    'a.b': 1,
    'a.b(c)': 3,
    'f(a)': 1,
    'a[0]': 1,
    '[1]': 0,
    'has(a.b)': 3,
    'a ? b : c': 2,
  };
  for (const [source, at] of Object.entries(places)) assert.equal(parse(source, macros).at, at, source);
});

/** cel-go parses these cases with other options: no optional syntax, no quoted fields, less depth. */
const OTHER_OPTIONS = /unsupported syntax|recursion|limit exceeded|existsOne/;

test("the first problem is the one that cel-go's parser reports first", () => {
  let compared = 0;
  const walk = (suite: SerializedIncrementalTestSuite): void => {
    for (const inner of suite.suites ?? []) walk(inner);
    for (const { original, error = '' } of suite.tests ?? []) {
      const [, line, column, message = ''] = /ERROR: :(\d+):(\d+): (.*)/.exec(error) ?? [];
      if (line !== '1' || OTHER_OPTIONS.test(error + original.expr)) continue;
      compared += 1;
      assert.equal(problems(original.expr)[0], `${Number(column) - 1}: ${message}`, original.expr);
    }
  };
  walk(parsing);
  assert.ok(compared > 30, `compared ${compared}`);
});
