import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authorizationError } from '#engine/auth/authorize.ts';
import type { Attributes, ResourceRequestAttributes } from '#engine/auth/authorize.ts';
import { ANONYMOUS_USER } from '#engine/auth/groups.ts';
import type { UserInfo } from '#engine/request/request.ts';

const mallory: UserInfo = { name: 'mallory', groups: ['system:authenticated'] };

const onGadgets = (overrides: Partial<ResourceRequestAttributes> = {}): ResourceRequestAttributes => ({
  verb: 'list',
  group: 'golden.local',
  version: 'v1',
  resource: 'gadgets',
  subresource: '',
  namespace: 'golden',
  name: '',
  ...overrides,
});
const get = (path: string): Attributes => ({ verb: 'get', path });

interface Refusal {
  readonly user?: UserInfo;
  readonly attributes: Attributes;
  readonly reason?: string;
  readonly message: string;
  readonly details: object;
}

const refusals: Record<string, Refusal> = {
  'a list in a namespace': {
    attributes: onGadgets(),
    message:
      'gadgets.golden.local is forbidden: User "mallory" cannot list resource "gadgets" in API group "golden.local" in the namespace "golden"',
    details: { group: 'golden.local', kind: 'gadgets' },
  },
  'one object by name': {
    attributes: onGadgets({ verb: 'delete', name: 'one' }),
    message:
      'gadgets.golden.local "one" is forbidden: User "mallory" cannot delete resource "gadgets" in API group "golden.local" in the namespace "golden"',
    details: { name: 'one', group: 'golden.local', kind: 'gadgets' },
  },
  'a kind without namespace': {
    attributes: onGadgets({ group: '', resource: 'nodes', namespace: '' }),
    message: 'nodes is forbidden: User "mallory" cannot list resource "nodes" in API group "" at the cluster scope',
    details: { kind: 'nodes' },
  },
  'a subresource': {
    attributes: onGadgets({ verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'a', name: 'p' }),
    message:
      'pods "p" is forbidden: User "mallory" cannot get resource "pods/log" in API group "" in the namespace "a"',
    details: { name: 'p', kind: 'pods' },
  },
  'an anonymous user': {
    user: ANONYMOUS_USER,
    attributes: onGadgets(),
    message:
      'gadgets.golden.local is forbidden: User "system:anonymous" cannot list resource "gadgets" in API group "golden.local" in the namespace "golden"',
    details: { group: 'golden.local', kind: 'gadgets' },
  },
  'a path': {
    attributes: get('/metrics'),
    message: 'forbidden: User "mallory" cannot get path "/metrics"',
    details: {},
  },
  'a request with a reason of the authorizer': {
    attributes: onGadgets({ group: '', resource: 'nodes', namespace: '' }),
    reason: 'because',
    message:
      'nodes is forbidden: User "mallory" cannot list resource "nodes" in API group "" at the cluster scope: because',
    details: { kind: 'nodes' },
  },
  'a path with HTML': {
    attributes: get('/<b>'),
    message: 'forbidden: User "mallory" cannot get path "/&lt;b&gt;"',
    details: {},
  },
};

for (const [name, { user = mallory, attributes, reason, message, details }] of Object.entries(refusals)) {
  test(`has Kubernetes' message for the refusal of ${name}`, () => {
    const status = authorizationError(user, attributes, reason).toStatus();
    assert.deepEqual(
      { message: status.message, details: status.details, reason: status.reason, code: status.code },
      { message, details, reason: 'Forbidden', code: 403 },
    );
  });
}
