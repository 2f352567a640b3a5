/** The account of the Job that changes machine types: its permissions, which the operator maintains. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { asAccount, startOperator, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/selfsame-system';
const NAME = 'convert-machine-type';

let api: TestApi;
let plane: OperatorPlane;

before(async () => {
  api = await startTestApi();
  plane = await startOperator(api);
  await plane.settle();
});
after(async () => {
  await plane.stop();
  await api.stop();
});

interface Access {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly namespace?: string;
}

async function isAllowed({ verb, group = '', resource, namespace = 'team' }: Access): Promise<boolean> {
  const [kind, subresource] = resource.split('/');
  const { name: user, groups } = asAccount(NAME);
  const resourceAttributes = { verb, group, resource: kind, subresource, namespace };
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups, resourceAttributes },
  };
  const { status }: Loose = await api.ok('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body });
  return status.allowed;
}

const own = 'selfsame-system';
const [kubevirt, subresources, identity] = ['kubevirt.io', 'subresources.kubevirt.io', 'identity.selfsame.io'];
const allowed: readonly Access[] = [
  ...['get', 'list', 'watch', 'patch'].map((verb) => ({ verb, group: kubevirt, resource: 'virtualmachines' })),
  { verb: 'patch', group: kubevirt, resource: 'virtualmachines/status' },
  ...['get', 'list', 'watch'].map((verb) => ({ verb, group: kubevirt, resource: 'virtualmachineinstances' })),
  ...['get', 'list', 'watch'].map((verb) => ({ verb, group: identity, resource: 'virtualmachineidentities' })),
  ...['get', 'list'].map((verb) => ({ verb, group: kubevirt, resource: 'kubevirts' })),
  ...['get', 'list'].map((verb) => ({ verb, resource: 'nodes' })),
  ...['get', 'list', 'create', 'update', 'patch'].map((verb) => ({ verb, resource: 'configmaps', namespace: own })),
  ...['get', 'patch'].map((verb) => ({ verb, group: 'batch', resource: 'jobs', namespace: own })),
];
const refused: readonly Access[] = [
  ...['create', 'update', 'delete'].map((verb) => ({ verb, group: kubevirt, resource: 'virtualmachines' })),
  ...['create', 'patch', 'delete'].map((verb) => ({ verb, group: kubevirt, resource: 'virtualmachineinstances' })),
  { verb: 'patch', group: identity, resource: 'virtualmachineidentities/status' },
  { verb: 'patch', group: kubevirt, resource: 'kubevirts' },
  ...['start', 'stop', 'restart'].map((name) => ({
    verb: 'update',
    group: subresources,
    resource: `virtualmachines/${name}`,
  })),
  { verb: 'patch', resource: 'nodes' },
  { verb: 'get', resource: 'configmaps' },
  { verb: 'delete', resource: 'configmaps', namespace: own },
  { verb: 'get', resource: 'secrets', namespace: own },
  { verb: 'get', resource: 'pods', namespace: own },
  { verb: 'create', group: 'batch', resource: 'jobs', namespace: own },
  ...['get', 'patch'].map((verb) => ({ verb, group: 'batch', resource: 'jobs' })),
];

test('it has exactly the permissions that the Job needs', async () => {
  const describe = ({ verb, resource, namespace = 'team' }: Access) => `${verb} ${resource} in ${namespace}`;
  for (const access of allowed) assert.equal(await isAllowed(access), true, describe(access));
  for (const access of refused) assert.equal(await isAllowed(access), false, describe(access));
});

test('its role and binding are restored, and lose added permissions', async () => {
  await api.ok('DELETE', `${ROLES}/roles/${NAME}`);
  await api.ok('DELETE', `${ROLES}/rolebindings/${NAME}`);
  await plane.settle();
  assert.equal(await isAllowed({ verb: 'create', resource: 'configmaps', namespace: own }), true);
  const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
  await api.ok('PATCH', `${ROLES}/roles/${NAME}`, { body: { rules } });
  await plane.settle();
  assert.equal(await isAllowed({ verb: 'get', resource: 'secrets', namespace: own }), false);
  assert.equal(await isAllowed({ verb: 'create', resource: 'configmaps', namespace: own }), true);
});
