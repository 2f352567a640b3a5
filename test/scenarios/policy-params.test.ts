/** Permissions for parameters in policies and bindings: authors cannot use them to read what they may not read. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { MALLORY, startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const GROUP_VERSION = 'rbac.authorization.k8s.io/v1';
const RBAC = `/apis/${GROUP_VERSION}`;
const SECRET = { apiVersion: 'v1', kind: 'Secret' };
const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };
const WIDGET = { apiVersion: 'x.test/v1', kind: 'Widget' };
const TOP = { name: 'top', namespace: 'kube-system', parameterNotFoundAction: 'Deny' };
const MATCHED = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }];

function policy(name: string, paramKind?: Loose, more: Loose = {}): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      ...(paramKind === undefined ? {} : { paramKind }),
      matchConstraints: { resourceRules: MATCHED },
      validations: [{ expression: 'true' }],
      ...more,
    },
  };
}

function binding(name: string, policyName: string, paramRef?: Loose): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName, validationActions: ['Warn'], ...(paramRef === undefined ? {} : { paramRef }) },
  };
}

type Act = (api: TestApi) => Promise<TestResponse>;
const asMallory = { user: MALLORY };
const post =
  (url: string, body: Loose): Act =>
  (api) =>
    api.call('POST', `${url}?dryRun=All`, { ...asMallory, body });
const patch =
  (url: string, body: Loose): Act =>
  (api) =>
    api.call('PATCH', `${url}?dryRun=All`, { ...asMallory, body });

/** Mallory's permissions: write policies and bindings, read ConfigMaps and the Secret kube-system/mine. */
const GRANTED = [
  { apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['*'] },
  { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] },
];
const MINE = [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['mine'], verbs: ['get'] }];

const WHO = '&{mallory  [system:authenticated] map[]}';
const noPolicy = (text: string) =>
  `ValidatingAdmissionPolicy.admissionregistration.k8s.io "new" is invalid: spec.paramKind: Forbidden: user ${WHO} ${text}`;
const noBinding = (text: string) =>
  `ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "new" is invalid: spec.paramRef: Forbidden: ${text}`;
const ALL = 'to determine minimum required permissions and user';

const cases: Record<string, { do: Act; refused?: string }> = {
  'a policy without parameters': { do: post(POLICIES, policy('new')) },
  'a policy with parameters that its author may read': { do: post(POLICIES, policy('new', CONFIG_MAP)) },
  'a policy with parameters that its author may not read': {
    do: post(POLICIES, policy('new', SECRET)),
    refused: noPolicy(
      'must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)',
    ),
  },
  'a policy with parameters of a kind that does not exist': {
    do: post(POLICIES, policy('new', WIDGET)),
    refused: noPolicy(
      'must have "get" permission on all objects of the referenced paramKind (kind=Widget, apiVersion=x.test/v1)',
    ),
  },
  'a change of a policy that keeps its parameters': {
    do: patch(`${POLICIES}/secret`, { metadata: { labels: { a: 'b' } }, spec: { failurePolicy: 'Ignore' } }),
  },
  "a change of the parameters' kind": {
    do: patch(`${POLICIES}/config-map`, { spec: { paramKind: SECRET } }),
    refused: noPolicy(
      'must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)',
    ).replace('"new"', '"config-map"'),
  },
  'the removal of the parameters': { do: patch(`${POLICIES}/secret`, { spec: { paramKind: null } }) },

  'a binding without parameters': { do: post(BINDINGS, binding('new', 'secret')) },
  'a binding to an object that its author may read': { do: post(BINDINGS, binding('new', 'config-map', TOP)) },
  'a binding to the one Secret that its author may read': {
    do: post(BINDINGS, binding('new', 'secret', { ...TOP, name: 'mine' })),
  },
  'a binding to another Secret': {
    do: post(BINDINGS, binding('new', 'secret', TOP)),
    refused: noBinding(`user ${WHO} does not have "get" permission on the object referenced by paramRef`),
  },
  'a binding to the Secret of that name in any namespace': {
    do: post(BINDINGS, binding('new', 'secret', { name: 'mine', parameterNotFoundAction: 'Deny' })),
    refused: noBinding(`user ${WHO} does not have "get" permission on the object referenced by paramRef`),
  },
  'a binding to Secrets by label': {
    do: post(
      BINDINGS,
      binding('new', 'secret', { selector: {}, namespace: 'kube-system', parameterNotFoundAction: 'Deny' }),
    ),
    refused: noBinding(`user ${WHO} does not have "list" permission on the object referenced by paramRef`),
  },
  'a binding to a policy that does not exist': {
    do: post(BINDINGS, binding('new', 'ghost', TOP)),
    refused: noBinding(
      `unable to get policy ghost ${ALL} ${WHO} does not have "get" permission for all groups, versions and resources`,
    ),
  },
  'a binding to a policy whose parameter kind does not exist': {
    do: post(BINDINGS, binding('new', 'widget', TOP)),
    refused: noBinding(
      `unable to resolve paramKind &{x.test/v1 Widget} ${ALL} ${WHO} does not have "get" permission for all groups, versions and resources`,
    ),
  },
  'a binding with parameters to a policy without': {
    do: post(BINDINGS, binding('new', 'plain', TOP)),
    refused: noBinding(`user ${WHO} does not have "get" permission on the object referenced by paramRef`),
  },
  'a change of a binding that keeps its parameters': {
    do: patch(`${BINDINGS}/secret`, { spec: { validationActions: ['Deny'] } }),
  },
  'the same parameters with another policy': {
    do: patch(`${BINDINGS}/config-map`, { spec: { policyName: 'secret' } }),
    refused: noBinding(`user ${WHO} does not have "get" permission on the object referenced by paramRef`).replace(
      '"new"',
      '"config-map"',
    ),
  },
  'other parameters': {
    do: patch(`${BINDINGS}/secret`, { spec: { paramRef: { name: 'other' } } }),
    refused: noBinding(`user ${WHO} does not have "get" permission on the object referenced by paramRef`).replace(
      '"new"',
      '"secret"',
    ),
  },
};

describe('parameters of policies', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
    const rbac = (kind: string, fields: Loose) => ({
      apiVersion: GROUP_VERSION,
      kind,
      metadata: { name: 'm' },
      ...fields,
    });
    const grant = (url: string, prefix: string, rules: Loose) =>
      Promise.all([
        api.ok('POST', `${url}/${prefix.toLowerCase()}roles`, { body: rbac(`${prefix}Role`, { rules }) }),
        api.ok('POST', `${url}/${prefix.toLowerCase()}rolebindings`, {
          body: rbac(`${prefix}RoleBinding`, {
            subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'mallory' }],
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: `${prefix}Role`, name: 'm' },
          }),
        }),
      ]);
    await grant(RBAC, 'Cluster', GRANTED);
    await grant(`${RBAC}/namespaces/kube-system`, '', MINE);

    const kinds = { secret: SECRET, 'config-map': CONFIG_MAP, widget: WIDGET, plain: undefined };
    for (const [name, kind] of Object.entries(kinds)) await api.ok('POST', POLICIES, { body: policy(name, kind) });
    for (const name of ['secret', 'config-map']) await api.ok('POST', BINDINGS, { body: binding(name, name, TOP) });
  });
  after(() => api.stop());

  for (const [sentence, { do: act, refused }] of Object.entries(cases)) {
    it(sentence, async () => {
      const { status, body } = await act(api);
      const message = status < 300 ? undefined : body.message;
      assert.deepEqual(
        { status: status < 300 ? 'done' : status, message },
        { status: refused ? 422 : 'done', message: refused },
      );
    });
  }

  it('are not checked for a user with all permissions', async () => {
    await api.ok('POST', `${POLICIES}?dryRun=All`, { body: policy('new', SECRET) });
    await api.ok('POST', `${BINDINGS}?dryRun=All`, { body: binding('new', 'ghost', TOP) });
  });
});
