import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Checked, CheckOptions } from '#cel/check/check.ts';
import { check } from '#cel/check/check.ts';
import { formatType } from '#cel/check/format-type.ts';
import { kindType } from '#cel/check/schema-type.ts';
import type { Environment } from '#cel/environment.ts';
import { createEnvironment, withVariables } from '#cel/environment.ts';
import type { Library, Overload } from '#cel/library.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import type { CelType } from '#cel/type.ts';
import {
  BOOL,
  DURATION,
  DYN,
  INT,
  STRING,
  TIMESTAMP,
  listOf,
  mapOf,
  opaque,
  optionalOf,
  param,
  typeOf,
} from '#cel/type.ts';

const QUANTITY = opaque('kubernetes.Quantity');

function declare(member: boolean, args: CelType[], result: CelType): Overload {
  return { id: 'test', member, args, result, call: () => null };
}

const testLibrary: Library = {
  functions: {
    quantity: [declare(false, [STRING], QUANTITY)],
    isGreaterThan: [declare(true, [QUANTITY, QUANTITY], BOOL)],
    'ip.isCanonical': [declare(false, [STRING], BOOL)],
    min: [declare(true, [listOf(INT)], INT), declare(true, [listOf(STRING)], STRING)],
    pair: [declare(false, [param('A'), param('B')], mapOf(param('A'), param('B')))],
    format: [declare(true, [STRING, listOf(DYN)], STRING)],
  },
};

const deployment = kindType(
  {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          replicas: { type: 'integer' },
          port: { 'x-kubernetes-int-or-string': true },
          selector: { type: 'object', additionalProperties: { type: 'string' } },
          containers: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
        },
      },
    },
  },
  'Deployment',
);

const environment: Environment = createEnvironment([standardLibrary, optionalLibrary, testLibrary], {
  object: DYN,
  deployment,
  labels: mapOf(STRING, STRING),
  maybe: optionalOf(mapOf(STRING, INT)),
  unknown: param('T'),
  n: INT,
  s: STRING,
  names: listOf(STRING),
  kind: typeOf(INT),
  'authorizer.requestResource': opaque('kubernetes.authorization.ResourceCheck'),
});

function checkSource(source: string, options?: CheckOptions, variables: Record<string, CelType> = {}): Checked {
  const known = withVariables(environment, variables);
  return check(parse(source, known.macros), known, options);
}

const types: Record<string, { source: string; want: string; options?: CheckOptions }> = {
  'a literal': { source: '1u', want: 'uint' },
  bytes: { source: "b'a'", want: 'bytes' },
  null: { source: 'null', want: 'null' },
  'a variable': { source: 'n', want: 'int' },
  'an absolute name': { source: '.n', want: 'int' },
  'a variable with dots': {
    source: 'authorizer.requestResource',
    want: 'kubernetes.authorization.ResourceCheck',
  },
  'a type name': { source: 'int', want: 'type(int)' },
  'a type name with dots': { source: 'google.protobuf.Duration', want: 'type(duration)' },
  'the type of types': { source: 'type', want: 'type(type(dyn))' },
  'comparing types': { source: 'type(n) == int && type(type) == type', want: 'bool' },
  'an operator': { source: 'n + 1', want: 'int' },
  'comparing numbers of different types': { source: '1 < 2.0 && 1u >= 1', want: 'bool' },
  'times and durations': {
    source: "timestamp('2024-01-01T00:00:00Z') - timestamp('2023-01-01T00:00:00Z')",
    want: 'duration',
  },
  'an operator with one dyn operand': { source: 'object.a + 1', want: 'int' },
  'an operator with two dyn operands': { source: 'object.a + object.b', want: 'dyn' },
  'a field of dyn': { source: 'object.spec.replicas', want: 'dyn' },
  'a field of a map': { source: 'labels.app', want: 'string' },
  'a field of an object type': { source: 'deployment.spec.replicas', want: 'int' },
  'a field of a list element': { source: 'deployment.spec.containers[0].name', want: 'string' },
  'an int-or-string field': { source: 'deployment.spec.port', want: 'dyn' },
  'a field named by a reserved word': { source: 'deployment.metadata.namespace', want: 'string' },
  'an optional field': { source: 'deployment.?spec.?replicas', want: 'optional_type(int)' },
  'a field of an optional': { source: 'maybe.a', want: 'optional_type(int)' },
  'an optional index': { source: 'labels[?"a"].orValue("")', want: 'string' },
  'an optional of a literal': { source: 'optional.of(1)', want: 'optional_type(int)' },
  'an optional element': { source: '[?maybe.a, 2]', want: 'list(int)' },
  'an optional entry': { source: '{?"a": maybe.a}', want: 'map(string, int)' },
  has: { source: 'has(deployment.spec.replicas)', want: 'bool' },
  'the empty list': { source: '[]', want: 'list(dyn)' },
  'an empty list takes the type of the other operand': { source: '[] + [1]', want: 'list(int)' },
  'a map': { source: '{"a": [1]}', want: 'map(string, list(int))' },
  'dyn in a list': { source: '[dyn(1), dyn("a")]', want: 'list(dyn)' },
  'mixed elements if they are allowed': {
    source: '[1, "a"]',
    want: 'list(dyn)',
    options: { mixedLiterals: true },
  },
  'a ternary': { source: 'n > 1 ? "a" : s', want: 'string' },
  'a ternary with dyn': { source: 'n > 1 ? object.a : s', want: 'dyn' },
  all: { source: 'names.all(x, x.startsWith("a"))', want: 'bool' },
  map: { source: 'names.map(x, size(x))', want: 'list(int)' },
  'map with a condition': { source: 'names.map(x, size(x) > 1, x)', want: 'list(string)' },
  filter: {
    source: 'deployment.spec.containers.filter(c, c.name == "a")',
    want: 'list(Deployment.spec.containers.@idx)',
  },
  'the keys of a map': { source: 'labels.map(key, key)', want: 'list(string)' },
  'a fold over dyn': { source: 'object.list.map(x, x.name)', want: 'list(dyn)' },
  'a nested fold': { source: '[[1], [2]].map(x, x.map(y, [y, n]))', want: 'list(list(list(int)))' },
  'a fold variable shadows an environment variable': { source: 'names.map(n, n)', want: 'list(string)' },
  'a field of a fold variable': {
    source: '[labels].map(authorizer, authorizer.requestResource)',
    want: 'list(string)',
  },
  'a function of a namespace': { source: 'ip.isCanonical("::1")', want: 'bool' },
  'a method': { source: 'quantity("1").isGreaterThan(quantity("2"))', want: 'bool' },
  'a method with several overloads': { source: 'names.min()', want: 'string' },
  'a method on dyn': { source: 'object.list.min()', want: 'dyn' },
  'a function with type parameters': { source: 'pair(n, names)', want: 'map(int, list(string))' },
  'an unbound type parameter': { source: 'unknown.a', want: 'dyn' },
  'comparing nullable types with null': {
    source: 'quantity("1") == null || maybe != null || deployment.spec == null || object.x == null',
    want: 'bool',
  },
  'the in operator for lists and maps': { source: 'n in [1, 2] && s in labels && s in object', want: 'bool' },
  'mixed arguments of format, converted to dyn': { source: '"%s %d".format([s, dyn(n)])', want: 'string' },
};

for (const [sentence, { source, want, options }] of Object.entries(types)) {
  test(`types: ${sentence}`, () => {
    const { type, problems } = checkSource(source, options);
    assert.deepEqual(problems, []);
    assert.equal(formatType(type), want);
  });
}

/** Each expectation is `offset: message`. */
const problems: Record<string, { source: string; want: string[] }> = {
  'an undeclared name': {
    source: 'n + foo',
    want: ["4: undeclared reference to 'foo' (in container '')"],
  },
  'an undeclared function': {
    source: 'foo(n)',
    want: ["3: undeclared reference to 'foo' (in container '')"],
  },
  'an undeclared method': {
    source: 's.foo()',
    want: ["5: undeclared reference to 'foo' (in container '')"],
  },
  'an operator with mismatched operands': {
    source: "1 + 'a'",
    want: ["2: found no matching overload for '_+_' applied to '(int, string)'"],
  },
  'a method on the wrong type': {
    source: 's.startsWith(1)',
    want: ["12: found no matching overload for 'startsWith' applied to 'string.(int)'"],
  },
  'a method called as a function': {
    source: 'isGreaterThan(quantity("1"), quantity("2"))',
    want: [
      "13: found no matching overload for 'isGreaterThan' applied to '(kubernetes.Quantity, kubernetes.Quantity)'",
    ],
  },
  'too many arguments': {
    source: 'size(s, s)',
    want: ["4: found no matching overload for 'size' applied to '(string, string)'"],
  },
  'null for a type that is not nullable': {
    source: 'deployment.spec.replicas == null',
    want: ["25: found no matching overload for '_==_' applied to '(int, null)'"],
  },
  'the short name of a timestamp': {
    source: "timestamp('2024-01-01T00:00:00Z') + 1",
    want: ["34: found no matching overload for '_+_' applied to '(timestamp, int)'"],
  },
  'an undefined field': {
    source: 'deployment.spec.replica > 1 && deployment.metadata.foo == ""',
    want: ["15: undefined field 'replica'", "50: undefined field 'foo'"],
  },
  'an undefined field in has()': {
    source: 'has(deployment.foo)',
    want: ["3: undefined field 'foo'"],
  },
  'a field of a number': { source: 'n.foo', want: ["1: type 'int' does not support field selection"] },
  'an object used as a map': {
    source: 'deployment["spec"]',
    want: ["10: found no matching overload for '_[_]' applied to '(Deployment, string)'"],
  },
  'an index of the wrong type': {
    source: 'labels[1]',
    want: ["6: found no matching overload for '_[_]' applied to '(map(string, string), int)'"],
  },
  'a field of an empty list': {
    source: '[].length',
    want: ["2: type 'list(_var0)' does not support field selection"],
  },
  'a list of different types': { source: "[1, 'a']", want: ["4: expected type 'int' but found 'string'"] },
  'a map of different types': {
    source: "{'a': 1, 2: 'b'}",
    want: ["9: expected type 'string' but found 'int'", "12: expected type 'int' but found 'string'"],
  },
  'a list with elements that match only at run time': {
    source: '[1, object.x]',
    want: ["10: expected type 'int' but found 'dyn'"],
  },
  'a map with entries that match only at run time': {
    source: '{"a": object.x, "b": 1}',
    want: ["21: expected type 'dyn' but found 'int'"],
  },
  'mixed arguments of format': {
    source: '"%s %d".format([s, n])',
    want: ["19: expected type 'string' but found 'int'"],
  },
  'an optional element that is not optional': {
    source: '[?n]',
    want: ["2: expected type 'optional_type(int)' but found 'int'"],
  },
  'an operand of a conjunction': {
    source: 'n && s',
    want: ["0: expected type 'bool' but found 'int'", "5: expected type 'bool' but found 'string'"],
  },
  'a ternary of different types': {
    source: "n > 1 ? 1 : 'a'",
    want: ["6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
  },
  'a fold over a number': {
    source: 'n.all(x, x)',
    want: ["0: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
  },
  'a fold over an object': {
    source: 'deployment.spec.all(x, true)',
    want: [
      "10: expression of type 'Deployment.spec' cannot be range of a comprehension (must be list, map, or dynamic)",
    ],
  },
  'a fold variable outside of its fold': {
    source: 'names.all(x, true) && x',
    want: ["22: undeclared reference to 'x' (in container '')"],
  },
  'a condition that is not a bool': { source: 'names.all(x, 1)', want: ["13: expected type 'bool' but found 'int'"] },
  'a message': { source: 'Foo{bar: 1}', want: ["3: undeclared reference to 'Foo' (in container '')"] },
  'a message literal of a type that is not a message type': {
    source: 'int{}',
    want: ["3: 'int' is not a message type"],
  },
  'a message literal of a variable': { source: 'n{}', want: ["1: 'int' is not a type"] },
  'an invalid duration': { source: "duration('x') > duration('1h')", want: ['9: invalid duration argument'] },
  'an invalid timestamp': { source: "timestamp('x') == null", want: ['10: invalid timestamp argument'] },
  'an invalid regular expression': { source: "s.matches('[')", want: ['10: invalid matches argument'] },
  'one mistake is reported once': {
    source: 'foo.bar + 1 == [foo][0]',
    want: ["0: undeclared reference to 'foo' (in container '')", "16: undeclared reference to 'foo' (in container '')"],
  },
};

for (const [sentence, { source, want }] of Object.entries(problems)) {
  test(`problems: ${sentence}`, () => {
    const found = checkSource(source).problems.toSorted((a, b) => a.at - b.at);
    assert.deepEqual(
      found.map(({ at, message }) => `${at}: ${message}`),
      want,
    );
  });
}

test('keeps a hundred problems and counts the others', () => {
  const { problems: kept, more } = checkSource(`[${Array.from({ length: 120 }, () => 'foo').join(', ')}]`);
  assert.equal(kept.length, 100);
  assert.equal(more, 20);
});

test('types that double with each step exceed the check budget', () => {
  const source = `[1]${'.map(x, {x: x})'.repeat(40)}`;
  const { problems: found } = checkSource(source);
  assert.deepEqual(found, [{ at: -1, message: 'expression is too complex to be type checked' }]);
});

test('functions accept timestamps and durations', () => {
  const { type } = checkSource('t + d', {}, { t: TIMESTAMP, d: DURATION });
  assert.equal(formatType(type), 'timestamp');
});
