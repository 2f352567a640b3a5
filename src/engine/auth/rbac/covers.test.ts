import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findUncovered } from '#engine/auth/rbac/covers.ts';
import { describeRules } from '#engine/auth/rbac/describe-rules.ts';
import type { RbacRule } from '#engine/auth/rbac/policy.ts';

/** Parses `get,list apps:deployments,pods/log named a,b` or `get /metrics,/logs/*`. */
function rule(text: string): RbacRule {
  const [verbs = '', target = '', , names] = text.split(' ');
  if (target.startsWith('/') || target === '**') {
    return { verbs: verbs.split(','), nonResourceURLs: target === '**' ? ['*'] : target.split(',') };
  }
  const [resources = '', groups = ''] = target.split(':').toReversed();
  return {
    verbs: verbs.split(','),
    apiGroups: groups.split(','),
    resources: resources.split(','),
    ...(names && { resourceNames: names.split(',') }),
  };
}

/** The held rules, the wanted rules, and the missing permissions. */
const cases: Record<string, [held: string[], wanted: string[], missing: string[]]> = {
  'the same': [['get pods'], ['get pods'], []],
  nothing: [[], [], []],
  'nothing is held': [[], ['get pods'], ['get pods']],
  'fewer verbs': [['get,list pods'], ['list pods'], []],
  'more verbs': [['get pods'], ['get,list,watch pods'], ['list pods', 'watch pods']],
  'several rules together': [['get pods', 'list pods'], ['get,list pods'], []],
  'another group': [['get pods'], ['get apps:pods'], ['get apps:pods']],
  'all groups': [['get *:pods'], ['get apps,batch:pods'], []],
  'all groups, held for one': [['get apps:pods'], ['get *:pods'], ['get *:pods']],
  'all verbs': [['* pods'], ['get,juggle pods'], []],
  'all verbs, held for some': [['get,list,watch,create,update,patch,delete pods'], ['* pods'], ['* pods']],
  'all resources': [['get *'], ['get pods,pods/log'], []],
  'all resources, held for one': [['get pods'], ['get *'], ['get *']],
  'a resource for its subresource': [['get pods'], ['get pods/log'], ['get pods/log']],
  'a subresource for its resource': [['get pods/log'], ['get pods'], ['get pods']],
  'a subresource of all resources': [['get */scale'], ['get deployments/scale,jobs/scale'], []],
  'a subresource of all resources, held for one': [['get deployments/scale'], ['get */scale'], ['get */scale']],
  'another subresource of all resources': [['get */scale'], ['get pods/status'], ['get pods/status']],
  'a name if all are held': [['get pods'], ['get pods named a'], []],
  'all names if one is held': [['get pods named a'], ['get pods'], ['get pods']],
  'some of the names': [['get pods named a'], ['get pods named a,b'], ['get pods named b']],
  'fewer names': [['get pods named a,b'], ['get pods named b'], []],
  'names of several rules': [['get pods named a', 'get pods named b'], ['get pods named a,b'], []],
  'a path': [['get /metrics'], ['get /metrics'], []],
  'another path': [['get /metrics'], ['get /logs'], ['get /logs']],
  'a path below a star': [['get /logs/*'], ['get /logs/a'], []],
  'a narrower star': [['get /logs/*'], ['get /logs/a/*'], []],
  'a wider star': [['get /logs/a/*'], ['get /logs/*'], ['get /logs/*']],
  'every path': [['get **'], ['get /metrics,/logs/*'], []],
  'resources do not cover paths': [['* *:*'], ['get /metrics'], ['get /metrics']],
  'paths do not cover resources': [['* **'], ['get pods'], ['get pods']],
  'everything for everything': [['* *:*', '* **'], ['* *:*', '* **'], []],
  'rules are not combined': [['get apps:x', 'list batch:y'], ['get batch:y'], ['get batch:y']],
};

for (const [name, [held, wanted, missing]] of Object.entries(cases)) {
  test(`compares: ${name}`, () => {
    assert.deepEqual(findUncovered(held.map(rule), wanted.map(rule)), missing.map(rule));
  });
}

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const HUGE: RbacRule = { apiGroups: many('g', 500), resources: many('r', 500), verbs: many('v', 500) };

test('a rule with millions of permissions is not compared', () => {
  assert.equal(findUncovered([], [HUGE]), undefined);
  assert.equal(findUncovered([rule('get pods')], [HUGE]), undefined);
});

test('a huge rule is compared if one rule covers it as a whole', () => {
  assert.deepEqual(findUncovered([rule('* *:*')], [HUGE]), []);
});

test('many rules are not compared with many others', () => {
  const held = many('r', 2000).map((resource) => rule(`get ${resource}`));
  assert.equal(findUncovered(held, [...held, rule('list x')]), undefined);
});

test('paths count separately', () => {
  const held: RbacRule = { nonResourceURLs: many('/p', 5000).map((path) => `${path}/*`), verbs: ['get'] };
  const wanted: RbacRule = { nonResourceURLs: many('/q', 5000), verbs: ['get'] };
  assert.equal(findUncovered([held], [wanted]), undefined);
});

test('describes missing permissions like Kubernetes', () => {
  const missing = findUncovered(
    [],
    ['get,list secrets', 'get apps:x named a', 'get,post /metrics', 'get pods'].map(rule),
  );
  assert.equal(
    describeRules(missing ?? []),
    [
      '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
      '{APIGroups:["apps"], Resources:["x"], ResourceNames:["a"], Verbs:["get"]}',
      '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
      '{NonResourceURLs:["/metrics"], Verbs:["post"]}',
    ].join('\n'),
  );
});
