import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/budget.ts';
import { createEnvironment } from '#cel/environment.ts';
import { adaptJson, toJson } from '#cel/evaluate/adapt-json.ts';
import { plan } from '#cel/evaluate/plan.ts';
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
  'a field of no map is a fault': ['object.metadata.name.x', 'fault: no such key: x'],
  'has() looks at the last field only': ['has(object.metadata.x)', false],
  'has() of a field in a missing one is a fault': ['has(object.status.x)', 'fault: no such key: status'],
  'a field that is null is there': ['has(object.spec.none) && object.spec.none == null', true],
  'what JavaScript objects inherit is not there': ['has(object.toString) || "constructor" in object', false],
  'keys with slashes by index': ['object.metadata.labels["a/b"]', 'y'],
  'a missing key is a fault': ['object.metadata.labels["z"]', 'fault: no such key: z'],
  'an index behind the end': ['object.spec.list[3]', 'fault: index out of bounds: 3'],
  'an index that is no number': ['object.spec.list["a"]', "fault: unsupported index type 'string' in list"],
  'whole numbers are ints, others doubles': ['type(object.spec.replicas) == type(1) && object.spec.ratio == 0.5', true],
  'ints and doubles compare': ['object.spec.replicas < 3.5 && object.spec.replicas == 3.0', true],
  'an unknown variable': ['nobody', 'fault: no such attribute(s): nobody'],
  'a variable with dots in its name': ['a.b.c', 'dotted'],
  'a variable hides the type of its name': ['int', 'fault: no such attribute(s): int'],
  'a fold variable hides dots': ['[{"b": {"c": 1}}].map(a, a.b.c)', [1]],
  'a function with dots in its name': ['optional.of(1).value()', 1],
  'a fold variable hides it too': ['[1].map(optional, optional.of(1))', 'fault: no such overload'],
  'types by name': ['type(timestamp(0)) == google.protobuf.Timestamp', true],
  'a type that does not fit': ['1 + "a"', 'fault: no such overload'],
  'an unknown function': ['frobnicate(1)', 'fault: no such overload'],
  'false beats a fault on the other side': ['1 / 0 == 1 && false', false],
  'true beats a fault on the other side': ['1 / 0 == 1 || true', true],
  'a fault that nothing beats': ['1 / 0 == 1 || false', 'fault: division by zero'],
  'the first fault is told': ['1 % 0 == 1 || 1 / 0 == 1', 'fault: modulus by zero'],
  'exists() goes on past a fault': ['[0, 1].exists(x, 1 / x == 1)', true],
  'all() does too': ['[0, 2].all(x, 1 / x == 1)', false],
  'map() does not': ['[0, 1].map(x, 1 / x)', 'fault: division by zero'],
  overflow: ['9223372036854775807 + 1', 'fault: integer overflow'],
  'unsigned overflow': ['0u - 1u', 'fault: unsigned integer overflow'],
  'a text that is no int': ['int("x")', "fault: type conversion error from 'string' to 'int'"],
  'a pattern that is none': ['"a".matches("[")', 'fault: error parsing regexp: missing closing ]: `[`'],
  'a pattern that is too large': ['"a".matches("(?:a{900}b{900}){9}")', 'fault: regular expression is too large'],
  'nested folds have their own variables': ['[1, 2].map(x, [3].map(y, [x, y].map(x, x + y)))', [[[4, 6]], [[5, 6]]]],
  'lists that share a beginning do not see each other': [
    '[[1, 2].map(x, x)].map(l, [l + [3], l + [4], l])',
    [
      [
        [1, 2, 3],
        [1, 2, 4],
        [1, 2],
      ],
    ],
  ],
  'a constant list stays what it is': [
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
  'the value of none': ['optional.none().value()', 'fault: optional.none() dereference'],
  'orValue does not evaluate what it does not need': ['optional.of(1).orValue(1 / 0)', 1],
  'an optional entry that is none': [
    '{?"a": 1}',
    "fault: cannot initialize optional entry 'a' from non-optional value 1",
  ],
  'a key twice': ['{"a": 1, "a": 2}', 'fault: Failed with repeated key'],
  'a message': ['Foo{a: 1}', 'fault: unknown type: Foo'],
  'strings are ordered by code point': ['"\\uffff" < "\\U0001F600"', true],
  'size counts code points': ['size("a\\U0001F600") == 2', true],
  'a fold over something else': ['1.all(x, true)', 'fault: unsupported comprehension range type'],
};
for (const [name, [source, want]] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(evaluate(source), want));
}

test('one program serves many evaluations: nothing of one is left in the next', () => {
  const program = plan(parse('[1, 2] + [x] + [].map(y, y) + [x].filter(y, y > 0)', environment.macros), environment);
  for (const x of [1n, 2n, 3n]) {
    const outcome = program(() => x, new Budget(1000));
    assert.deepEqual(toJson(outcome as never), [1, 2, Number(x), Number(x)]);
  }
});
