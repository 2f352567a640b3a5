/** Tests whole expressions: parser, checker and evaluator together with the libraries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { compile } from '#cel/compile.ts';
import { createEnvironment } from '#cel/environment.ts';
import { fault, plain } from '#cel/extensions/testing/call.ts';
import { AUTHORIZER, authorizerValue } from '#cel/kubernetes/authorizer.ts';
import type { AccessCheck } from '#cel/kubernetes/authorizer.ts';
import { bindLibrary } from '#cel/extensions/testing/bind-macro.ts';
import { stringsReverseLibrary } from '#cel/extensions/testing/strings-reverse.ts';
import { kubernetesLibraries } from '#cel/kubernetes/libraries.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { DYN } from '#cel/type.ts';
import { CelMap } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const check: AccessCheck = {
  authorize: (attributes) => ({ allowed: attributes.verb === 'get', reason: JSON.stringify(attributes) }),
  serviceAccount: () => ({ ...check, authorize: () => ({ allowed: false, reason: 'a robot' }) }),
};

const variables = { authorizer: AUTHORIZER, any: DYN };
const base = [standardLibrary, optionalLibrary, ...kubernetesLibraries];
const environment = createEnvironment(base, variables);
/** The libraries that policies of Kubernetes 1.32 cannot use. */
const later = createEnvironment([...base, stringsReverseLibrary, bindLibrary], variables);

function run(source: string, where = environment): unknown {
  const program = compile(source, where);
  assert.ok('evaluate' in program, 'failure' in program ? program.failure : '');
  const known: Record<string, CelValue> = { authorizer: authorizerValue(check), any: 'any' };
  return plain(program.evaluate((name) => known[name], new Budget(1_000_000)));
}

const cases: Record<string, unknown> = {
  // strings
  "'registry.io/app:v1'.split(':')[1].upperAscii()": 'V1',
  "['a', 'b'].map(x, x.replace('a', 'c')).join('+')": 'c+b',
  "'%s has %d of %s'.format([dyn('x'), 2, ['y', 'z']])": 'x has 2 of ["y", "z"]',
  'strings.quote(\'say "hi"\')': '"say \\"hi\\""',
  "'hello'.substring(1, 9)": fault('index out of range: 9'),
  "'hello'.indexOf('l') + [1, 2].indexOf(2)": 3n,
  // sets
  "sets.contains(['a', 'b'], ['b']) && !sets.intersects([1], [2]) && sets.equivalent([1, 1], [1])": true,
  // lists
  '[3, 1, 2].max() - [3, 1, 2].min() + [1, 2].sum()': 5n,
  '[0.5, 0.25].sum()': 0.75,
  "[duration('1m'), duration('1s')].sum() == duration('61s')": true,
  "['a', 'b'].isSorted() && ![2, 1].isSorted()": true,
  '[].min()': fault('min called on empty list'),
  // regex
  "'abc 123'.find('[0-9]+')": '123',
  "'1 2 3'.findAll('[0-9]', 2)": ['1', '2'],
  "'a'.find('(')": fault('Illegal regex: error parsing regexp: missing closing ): `(`'),
  // url
  "url('https://user@example.com:80/a b?x=1&x=2').getQuery()['x'][1]": '2',
  "url('/a') == url('/a') && url('https://[::1]:8080/').getPort() == '8080'": true,
  "isURL('nowhere') || isURL('/somewhere')": true,
  // ip and cidr
  "ip('10.0.0.1').family() == 4 && string(ip('::0001')) == '::1' && ip.isCanonical('::1')": true,
  "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))": true,
  "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'": true,
  "isIP('1.2.3') || isCIDR('1.2.3.4')": false,
  // quantity
  "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k') == quantity('1000')": true,
  "quantity('50k').add(20).sub(quantity('100k')).sub(-50000).asInteger()": 20n,
  "sign(quantity('-1')) + quantity('2').compareTo(quantity('1'))": 0n,
  "quantity('many')": fault(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ),
  // format
  "format.dns1123Label().validate('a-b').hasValue()": false,
  "format.named('uuid').value().validate('x').value()": ['does not match the UUID format'],
  "format.named('nothing').hasValue()": false,
  // authorizer
  "authorizer.group('apps').resource('deployments').namespace('x').check('get').allowed()": true,
  "authorizer.path('/x').check('delete').allowed()": false,
  "authorizer.path('/x').check('get').reason()": '{"path":"/x","verb":"get"}',
  "authorizer.serviceAccount('default', 'robot').path('/').check('get').reason()": 'a robot',
  // two variables
  "[1, 2, 3].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1)": true,
  '[5, 7, 8].existsOne(i, v, v % 5 == i)': true,
  '[2, 4, 6].transformList(i, v, i != 1, v / 2 + i)': [1n, 5n],
  "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k + k)": new Map([['b', 'bb']]),
  "{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, {v: k})": new Map([
    ['x', 'a'],
    ['y', 'b'],
  ]),
  "{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k})": fault('insert failed: key x already exists'),
  '[1, 2].transformMap(i, v, v * v)': new Map([
    [0n, 1n],
    [1n, 4n],
  ]),
};
for (const [source, want] of Object.entries(cases)) {
  test(source, () => assert.deepEqual(run(source), want));
}

const refused: Record<string, RegExp> = {
  '[1].all(i, i, true)': /duplicate variable name: i/,
  '[1].transformList(1, v, v)': /argument must be a simple name/,
  'isQuantity([1])': /found no matching overload for 'isQuantity' applied to '\(list\(int\)\)'/,
  "quantity('1').add('2')": /found no matching overload for 'add'/,
  "semver('1.0.0')": /undeclared reference to 'semver'/,
  "'abc'.reverse()": /undeclared reference to 'reverse'/,
  'cel.bind(x, 1, x)': /undeclared reference to '(?:bind|cel|x)'/,
};
for (const [source, why] of Object.entries(refused)) {
  test(`Kubernetes 1.32 rejects ${source}`, () => {
    const program = compile(source, environment);
    assert.match('failure' in program ? program.failure : '', why);
  });
}

test('newer libraries work', () => {
  assert.equal(run("cel.bind(x, 'ab', x.reverse() + x)", later), 'baab');
  assert.match(JSON.stringify(compile('cel.bind(1, 2, 3)', later)), /variable names must be simple identifiers/);
});

test('building a map costs its entries', () => {
  const program = compile("any.split(',').transformMap(i, v, v)", environment);
  assert.ok('evaluate' in program);
  const result = program.evaluate(() => 'x,'.repeat(2000), new Budget(200_000));
  assert.ok(result instanceof CelMap);
  assert.equal(result.size, 2001);
});
