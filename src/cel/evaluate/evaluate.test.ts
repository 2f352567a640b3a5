import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { createEnvironment } from '#cel/environment.ts';
import { adaptJson, toJson } from '#cel/evaluate/adapt-json.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { DYN } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';

const environment = createEnvironment([standardLibrary, optionalLibrary], { 'a.b.c': DYN, object: DYN, int: DYN });
const variables: Record<string, unknown> = {
  object: {
    metadata: { name: 'vm', labels: { app: 'x', 'a/b': 'y' }, __proto__: undefined },
    spec: { replicas: 3, ratio: 0.5, paused: false, list: [3, 1, 2], none: null },
  },
  'a.b.c': 'dotted',
};

/** Returns the value as JSON, or `fault: ...`. */
function evaluate(source: string): unknown {
  const views = new Map(Object.entries(variables).map(([name, value]) => [name, adaptJson(value)]));
  const outcome = plan(parse(source, environment.macros), environment)((name) => views.get(name), new Budget(100_000));
  return outcome instanceof CelFault ? `fault: ${outcome.message}` : toJson(outcome);
}

const cases: Record<string, readonly [source: string, want: unknown]> = {
  'reads fields': ['object.metadata.name', 'vm'],
  'a missing field is a fault': ['object.metadata.namespace', 'fault: no such key: namespace'],
  'a field of a value that is not a map is a fault': ['object.metadata.name.x', 'fault: no such key: x'],
  'has() tests only the last field': ['has(object.metadata.x)', false],
  'has() on a missing parent is a fault': ['has(object.status.x)', 'fault: no such key: status'],
  'a null field is present': ['has(object.spec.none) && object.spec.none == null', true],
  'inherited JavaScript properties are not fields': ['has(object.toString) || "constructor" in object', false],
  'an index reads keys with slashes': ['object.metadata.labels["a/b"]', 'y'],
  'a missing key is a fault': ['object.metadata.labels["z"]', 'fault: no such key: z'],
  'an index after the end is a fault': ['object.spec.list[3]', 'fault: index out of bounds: 3'],
  'an index that is not a number is a fault': [
    'object.spec.list["a"]',
    "fault: unsupported index type 'string' in list",
  ],
  'whole numbers are ints, others doubles': ['type(object.spec.replicas) == type(1) && object.spec.ratio == 0.5', true],
  'ints and doubles can be compared': ['object.spec.replicas < 3.5 && object.spec.replicas == 3.0', true],
  'an unknown variable': ['nobody', 'fault: no such attribute(s): nobody'],
  'a variable with dots in its name': ['a.b.c', 'dotted'],
  'a variable shadows the type with its name': ['int', 'fault: no such attribute(s): int'],
  'a fold variable shadows a variable with dots': ['[{"b": {"c": 1}}].map(a, a.b.c)', [1]],
  'a function with dots in its name': ['optional.of(1).value()', 1],
  'a fold variable shadows a function with dots': ['[1].map(optional, optional.of(1))', 'fault: no such overload'],
  'types can be named': ['type(timestamp(0)) == google.protobuf.Timestamp', true],
  'operands of mismatched types are a fault': ['1 + "a"', 'fault: no such overload'],
  'an unknown function': ['frobnicate(1)', 'fault: no such overload'],
  'false && fault is false in any order': ['1 / 0 == 1 && false', false],
  'true || fault is true in any order': ['1 / 0 == 1 || true', true],
  'false || fault is the fault': ['1 / 0 == 1 || false', 'fault: division by zero'],
  'the first of two faults is returned': ['1 % 0 == 1 || 1 / 0 == 1', 'fault: modulus by zero'],
  'exists() continues after a fault': ['[0, 1].exists(x, 1 / x == 1)', true],
  'all() continues after a fault': ['[0, 2].all(x, 1 / x == 1)', false],
  'map() stops at a fault': ['[0, 1].map(x, 1 / x)', 'fault: division by zero'],
  overflow: ['9223372036854775807 + 1', 'fault: integer overflow'],
  'unsigned overflow': ['0u - 1u', 'fault: unsigned integer overflow'],
  'a conversion from text that is not an int is a fault': [
    'int("x")',
    "fault: type conversion error from 'string' to 'int'",
  ],
  'an invalid pattern is a fault': ['"a".matches("[")', 'fault: error parsing regexp: missing closing ]: `[`'],
  'a pattern that is too large is a fault': [
    '"a".matches("(?:a{900}b{900}){9}")',
    'fault: regular expression is too large',
  ],
  'nested folds have their own variables': ['[1, 2].map(x, [3].map(y, [x, y].map(x, x + y)))', [[[4, 6]], [[5, 6]]]],
  'lists that share an array are independent': [
    '[[1, 2].map(x, x)].map(l, [l + [3], l + [4], l])',
    [
      [
        [1, 2, 3],
        [1, 2, 4],
        [1, 2],
      ],
    ],
  ],
  'a constant list does not change': [
    '[1, 2].map(x, [0] + [x])',
    [
      [0, 1],
      [0, 2],
    ],
  ],
  'optional fields': ['object.?spec.?x.orValue("none")', 'none'],
  'optional elements': ['[?object.?none, ?optional.of(1)]', [1]],
  optMap: ['object.?spec.?replicas.optMap(r, r + 1).orValue(0)', 4],
  optFlatMap: ['object.?spec.optFlatMap(s, s.?replicas).value()', 3],
  'the value of none is a fault': ['optional.none().value()', 'fault: optional.none() dereference'],
  'orValue() evaluates its argument on demand': ['optional.of(1).orValue(1 / 0)', 1],
  'an optional entry with none is omitted': [
    '{?"a": 1}',
    "fault: cannot initialize optional entry 'a' from non-optional value 1",
  ],
  'a duplicate key is a fault': ['{"a": 1, "a": 2}', 'fault: Failed with repeated key'],
  'a message': ['Foo{a: 1}', 'fault: unknown type: Foo'],
  'strings are ordered by code point': ['"\\uffff" < "\\U0001F600"', true],
  'size counts code points': ['size("a\\U0001F600") == 2', true],
  'a fold over a value that is not a list or map is a fault': [
    '1.all(x, true)',
    'fault: unsupported comprehension range type',
  ],
};
for (const [name, [source, want]] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(evaluate(source), want));
}

test('evaluations of one program are independent', () => {
  const program = plan(parse('[1, 2] + [x] + [].map(y, y) + [x].filter(y, y > 0)', environment.macros), environment);
  for (const x of [1n, 2n, 3n]) {
    const outcome = program(() => x, new Budget(1000));
    assert.deepEqual(toJson(outcome as never), [1, 2, Number(x), Number(x)]);
  }
});
