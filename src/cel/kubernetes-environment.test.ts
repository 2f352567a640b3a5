import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { compile } from '#cel/compile.ts';
import { withVariables } from '#cel/environment.ts';
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { BOOL, DYN, STRING } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';
import { CelFault } from '#cel/value.ts';

const environment = withVariables(kubernetesEnvironment, { object: DYN, oldObject: DYN, params: DYN, request: DYN });

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web-1',
    namespace: 'default',
    labels: { app: 'web', 'team.example.com/owner': 'blue' },
    annotations: { protect: 'true' },
  },
  spec: {
    replicas: 3,
    paused: false,
    'host-network': true,
    in: 'other',
    __in__: 'own',
    containers: [
      { name: 'web', image: 'registry.example.com/web:1.2', resources: { limits: { memory: '512Mi' } } },
      { name: 'side', image: 'registry.example.com/side:2', resources: { limits: { memory: '1Gi' } } },
    ],
    hosts: ['10.0.0.1', '10.0.1.7'],
    url: 'https://example.com:8080/path',
  },
};

const variables: Record<string, unknown> = {
  object: pod,
  oldObject: null,
  params: { maxReplicas: 5, registries: ['registry.example.com'], memory: '2Gi' },
  request: { operation: 'CREATE', userInfo: { username: 'ada', groups: ['dev', 'system:authenticated'] } },
};

function evaluate(source: string): CelValue | CelFault {
  const program = compile(source, environment, { expect: [BOOL, STRING] });
  assert.ok('evaluate' in program, 'failure' in program ? program.failure : '');
  const activation = (name: string): CelValue | undefined =>
    name in variables ? adaptJson(variables[name]) : undefined;
  return program.evaluate(activation, new Budget(100_000));
}

const cases: Record<string, { source: string; want: CelValue }> = {
  'a bound': { source: 'object.spec.replicas <= params.maxReplicas', want: true },
  'an exceeded bound': { source: 'object.spec.replicas < 3', want: false },
  'a required label': { source: "'app' in object.metadata.labels", want: true },
  'a field that may be missing': { source: 'has(object.spec.paused) && !has(object.spec.other)', want: true },
  'a field with dots in its name': {
    source: "object.metadata.labels['team.example.com/owner'] == 'blue'",
    want: true,
  },
  'an object that is being created': { source: 'oldObject == null || oldObject.spec == object.spec', want: true },
  'images from allowed registries': {
    source: "object.spec.containers.all(c, params.registries.exists(r, c.image.startsWith(r + '/')))",
    want: true,
  },
  'unique names': {
    source: 'object.spec.containers.all(c, object.spec.containers.exists_one(d, d.name == c.name))',
    want: true,
  },
  'a regular expression': { source: "object.metadata.name.matches('^[a-z]+-[0-9]+$')", want: true },
  quantities: {
    source: 'object.spec.containers.all(c, quantity(c.resources.limits.memory).isLessThan(quantity(params.memory)))',
    want: true,
  },
  addresses: { source: "object.spec.hosts.all(h, cidr('10.0.0.0/16').containsIP(h))", want: true },
  'a canonical address': { source: "ip.isCanonical('10.0.0.1')", want: true },
  'a URL': { source: "url(object.spec.url).getHostname() == 'example.com'", want: true },
  'the type of an address': {
    source: "type(ip('10.0.0.1')) == net.IP && type(cidr('10.0.0.0/8')) == net.CIDR",
    want: true,
  },
  'a field named like a reserved word': {
    source: "object.metadata.__namespace__ == 'default' && has(object.metadata.__namespace__)",
    want: true,
  },
  'a field with a dash in its name': { source: 'object.spec.host__dash__network == true', want: true },
  'an optional field with a dash in its name': {
    source: 'object.?spec.?host__dash__network.orValue(false) && !object.?spec.?x__dash__y.hasValue()',
    want: true,
  },
  'a field whose name is the escape of another': { source: "object.spec.__in__ == 'own'", want: true },
  'a list': { source: '[1, 2, 3].sum() == 6 && [3, 1].isSorted() == false', want: true },
  sets: { source: "sets.contains(request.userInfo.groups, ['dev'])", want: true },
  'a format': { source: '!format.dns1123Label().validate(object.metadata.name).hasValue()', want: true },
  'an optional with a value': {
    source: "object.metadata.?annotations[?'protect'].orValue('false') == 'true'",
    want: true,
  },
  'an optional without a value': { source: "object.?spec.?foo.?bar.orValue('none') == 'none'", want: true },
  'a ternary': { source: "request.operation == 'DELETE' ? oldObject.x == 1 : true", want: true },
  'a fault that a disjunction ignores': { source: "object.spec.foo == 1 || object.kind == 'Pod'", want: true },
  'a message': {
    source: "'replicas of ' + object.metadata.name + ' must be at most ' + string(params.maxReplicas)",
    want: 'replicas of web-1 must be at most 5',
  },
  'a message with format': {
    source: "'%s has %d replicas'.format([object.metadata.name, object.spec.replicas])",
    want: 'web-1 has 3 replicas',
  },
  strings: { source: "object.spec.containers.map(c, c.name.upperAscii()).join(',') == 'WEB,SIDE'", want: true },
  'two variables': { source: 'object.metadata.labels.all(k, v, size(k) > 0 && size(v) > 0)', want: true },
  types: { source: 'type(object.spec.replicas) == int && type(object.metadata) == map', want: true },
  times: {
    source: "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
    want: true,
  },
};

for (const [sentence, { source, want }] of Object.entries(cases)) {
  test(`expressions of policies: ${sentence}`, () => {
    assert.deepEqual(evaluate(source), want);
  });
}

test('a missing key is a fault with its name', () => {
  const result = evaluate("object.metadata.labels.tier == 'front'");
  assert.ok(result instanceof CelFault);
  assert.equal(result.message, 'no such key: tier');
});

test("problems of an expression name the types of Kubernetes' libraries", () => {
  assert.deepEqual(compile("quantity('1Gi') + 1 == 2", environment), {
    about: 'source',
    failure:
      "ERROR: <input>:1:17: found no matching overload for '_+_' applied to '(kubernetes.Quantity, int)'\n" +
      " | quantity('1Gi') + 1 == 2\n | ................^",
  });
});
