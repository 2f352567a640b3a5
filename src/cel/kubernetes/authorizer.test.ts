import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { call, fault, plain } from '#cel/extensions/testing/call.ts';
import type { AccessCheck, AccessDecision } from '#cel/kubernetes/authorizer.ts';
import { authorizerLibrary, authorizerValue, resourceCheckValue } from '#cel/kubernetes/authorizer.ts';
import { CelFault } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

/** A fake authorizer that records the attributes and returns a fixed decision. */
function anAuthorizer(decision: AccessDecision = { allowed: true }, user = 'ann') {
  const asked: unknown[] = [];
  const checkFor = (user: string): AccessCheck => ({
    authorize(attributes) {
      asked.push({ user, ...attributes });
      return decision;
    },
    serviceAccount: (namespace, name) => checkFor(`${namespace}/${name}`),
  });
  return { asked, check: checkFor(user) };
}

/** Chains calls: `chain(value, ['group', ''], ['resource', 'pods'])`. The first fault ends the chain. */
function chain(value: CelValue, ...links: string[][]): CelValue | CelFault {
  let result: CelValue | CelFault = value;
  for (const [name = '', ...args] of links) {
    if (result instanceof CelFault) return result;
    result = call(authorizerLibrary, name, [result, ...args]);
  }
  return result;
}

test('a resource check passes the collected attributes', () => {
  const { asked, check } = anAuthorizer();
  const allowed = chain(
    authorizerValue(check),
    ['group', 'apps'],
    ['resource', 'deployments'],
    ['subresource', 'scale'],
    ['namespace', 'prod'],
    ['name', 'web'],
    ['check', 'update'],
    ['allowed'],
  );
  assert.equal(allowed, true);
  const attributes = { group: 'apps', version: '*', resource: 'deployments', subresource: 'scale' };
  assert.deepEqual(asked, [{ user: 'ann', ...attributes, namespace: 'prod', name: 'web', verb: 'update' }]);
});

test('selectors are passed as written', () => {
  const { asked, check } = anAuthorizer();
  chain(
    resourceCheckValue(check, { group: '', resource: 'pods', subresource: '', namespace: '', name: '' }),
    ['fieldSelector', 'spec.nodeName=n1'],
    ['labelSelector', 'app=web'],
    ['check', 'list'],
  );
  const [{ fieldSelector, labelSelector, resource }] = asked as [Record<string, unknown>];
  assert.deepEqual([resource, fieldSelector, labelSelector], ['pods', 'spec.nodeName=n1', 'app=web']);
});

test('a path check passes the path', () => {
  const { asked, check } = anAuthorizer({ allowed: false, reason: 'no rule' });
  const decision = chain(authorizerValue(check), ['path', '/healthz'], ['check', 'get']);
  assert.deepEqual(asked, [{ user: 'ann', path: '/healthz', verb: 'get' }]);
  assert.ok(!(decision instanceof CelFault));
  assert.equal(chain(decision, ['allowed']), false);
  assert.equal(chain(decision, ['reason']), 'no rule');
  assert.equal(chain(decision, ['errored']), false);
  assert.equal(chain(decision, ['error']), '');
});

test('a decision reports its error', () => {
  const { check } = anAuthorizer({ allowed: false, error: 'webhook is down' });
  const decision = chain(authorizerValue(check), ['path', '/'], ['check', 'get']);
  assert.ok(!(decision instanceof CelFault));
  assert.equal(chain(decision, ['errored']), true);
  assert.equal(chain(decision, ['error']), 'webhook is down');
  assert.equal(chain(decision, ['reason']), '');
});

test('a service account is checked as its own user', () => {
  const { asked, check } = anAuthorizer();
  chain(authorizerValue(check), ['serviceAccount', 'kube-system', 'robot'], ['path', '/'], ['check', 'get']);
  assert.deepEqual(asked, [{ user: 'kube-system/robot', path: '/', verb: 'get' }]);
});

const refused: Record<string, [string[][], string]> = {
  'a blank path': [[['path', ' ']], 'path must not be empty'],
  'a blank resource': [
    [
      ['group', ''],
      ['resource', ''],
    ],
    'resource must not be empty',
  ],
  'a bad service account': [[['serviceAccount', 'default', 'No!']], 'Invalid service account name'],
  'a bad namespace': [[['serviceAccount', 'a.b', 'robot']], 'Invalid service account namespace'],
};
for (const [what, [links, why]] of Object.entries(refused)) {
  test(`${what} is a fault`, () => {
    assert.deepEqual(plain(chain(authorizerValue(anAuthorizer().check), ...links)), fault(why));
  });
}

test('an expression can make two checks but not three', () => {
  const { asked, check } = anAuthorizer();
  const path = chain(authorizerValue(check), ['path', '/']);
  assert.ok(!(path instanceof CelFault));
  const budget = new Budget(1_000_000);
  call(authorizerLibrary, 'check', [path, 'get'], budget);
  call(authorizerLibrary, 'check', [path, 'get'], budget);
  assert.throws(() => call(authorizerLibrary, 'check', [path, 'get'], budget), CostLimitError);
  assert.equal(asked.length, 2);
});
