/** ValidatingAdmissionPolicies through the whole core: refusals and their messages, warnings and audit annotations. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { aGadget, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const SPEC = { size: 2 };
const CONFIG_MAPS = '/api/v1/namespaces/golden/configmaps';

/** The policy that KubeVirt's operator installs, for gadgets. */
const PROTECTED =
  "!has(oldObject.metadata.labels) || !('protect' in oldObject.metadata.labels) || !variables.label.matches('^(true|True)$')";

interface Setup {
  readonly spec?: Loose;
  readonly actions?: readonly string[];
  readonly binding?: Loose;
}

interface Case extends Setup {
  readonly do: (api: TestApi) => Promise<TestResponse>;
  readonly want: { status: number; message?: RegExp; reason?: string; warnings?: readonly string[]; audit?: Loose };
}

const create = (labels?: Record<string, string>) => (api: TestApi) =>
  api.call('POST', GADGETS, { body: aGadget('new', SPEC, { labels }) });
const remove =
  (name: string, query = '') =>
  (api: TestApi) =>
    api.call('DELETE', `${GADGETS}/${name}${query}`);

const onDelete = { resourceRules: [rule(['DELETE'])] };
const onWrite = { resourceRules: [rule(['CREATE', 'UPDATE'])] };

function rule(operations: string[]): Loose {
  return { apiGroups: ['golden.local'], apiVersions: ['v1'], operations, resources: ['gadgets'] };
}

const deny = (expression: string, more: Loose = {}) => ({
  matchConstraints: onWrite,
  validations: [{ expression, ...more }],
});

const cases: Record<string, Case> = {
  'a request that the expression allows passes': { spec: deny('true'), do: create(), want: { status: 201 } },
  'a request that it denies is Invalid, with the wording of forbidden': {
    spec: deny('false', { message: 'not today' }),
    do: create(),
    want: {
      status: 422,
      reason: 'Invalid',
      message:
        /^gadgets\.golden\.local "new" is forbidden: ValidatingAdmissionPolicy 'rule' with binding 'rule' denied request: not today$/,
    },
  },
  'the reason determines the code': {
    spec: deny('false', { message: 'not today', reason: 'Forbidden' }),
    do: create(),
    want: { status: 403, reason: 'Forbidden', message: /not today/ },
  },
  'without a message the expression is reported': {
    spec: deny("object.metadata.name == 'old'"),
    do: create(),
    want: { status: 422, message: /failed expression: object\.metadata\.name == 'old'$/ },
  },
  'messageExpression takes precedence over message': {
    spec: deny('false', { message: 'plain', messageExpression: "'no ' + object.metadata.name" }),
    do: create(),
    want: { status: 422, message: /denied request: no new$/ },
  },
  'a messageExpression that fails falls back to the message': {
    spec: deny('false', { message: 'plain', messageExpression: 'string(object.spec.nothing.at.all)' }),
    do: create(),
    want: { status: 422, message: /denied request: plain$/ },
  },
  'a messageExpression with several lines falls back to the message': {
    spec: deny('false', { message: 'plain', messageExpression: "'a\\nb'" }),
    do: create(),
    want: { status: 422, message: /denied request: plain$/ },
  },
  'an error denies under failurePolicy Fail': {
    spec: deny("object.spec.absent == 'x'"),
    do: create(),
    want: { status: 422, message: /expression 'object\.spec\.absent == 'x'' resulted in error: no such key: absent$/ },
  },
  'an error passes under failurePolicy Ignore': {
    spec: { ...deny("object.spec.absent == 'x'"), failurePolicy: 'Ignore' },
    do: create(),
    want: { status: 201 },
  },
  'a denial is one under failurePolicy Ignore, too': {
    spec: { ...deny('false', { message: 'still' }), failurePolicy: 'Ignore' },
    do: create(),
    want: { status: 422, message: /still/ },
  },
  'Warn lets the request pass with a warning': {
    spec: deny('false', { message: 'hm' }),
    actions: ['Warn'],
    do: create(),
    want: {
      status: 201,
      warnings: ["Validation failed for ValidatingAdmissionPolicy 'rule' with binding 'rule': hm"],
    },
  },
  'Audit lets the request pass with an audit annotation': {
    spec: deny('false', { message: 'hm' }),
    actions: ['Audit'],
    do: create(),
    want: {
      status: 201,
      audit: {
        'validation.policy.admission.k8s.io/validation_failure':
          '[{"message":"hm","policy":"rule","binding":"rule","expressionIndex":0,"validationActions":["Audit"]}]',
      },
    },
  },
  'auditAnnotations are recorded under the name of the policy': {
    spec: {
      matchConstraints: onWrite,
      auditAnnotations: [
        { key: 'size', valueExpression: 'string(object.spec.size)' },
        { key: 'none', valueExpression: 'null' },
      ],
    },
    do: create(),
    want: { status: 201, audit: { 'rule/size': '2' } },
  },
  'an auditAnnotation that fails denies under Fail': {
    spec: {
      matchConstraints: onWrite,
      auditAnnotations: [{ key: 'x', valueExpression: 'string(object.spec.absent)' }],
    },
    actions: ['Audit'],
    do: create(),
    want: { status: 422, message: /no such key: absent/ },
  },
  'a match condition that is false skips the policy': {
    spec: { ...deny('false'), matchConditions: [{ name: 'never', expression: "object.metadata.name == 'other'" }] },
    do: create(),
    want: { status: 201 },
  },
  'a match condition that fails denies under Fail': {
    spec: { ...deny('true'), matchConditions: [{ name: 'broken', expression: 'object.spec.absent > 1' }] },
    do: create(),
    want: { status: 422, message: /no such key: absent/ },
  },
  'a match condition that fails is ignored under Ignore': {
    spec: {
      ...deny('false'),
      failurePolicy: 'Ignore',
      matchConditions: [{ name: 'broken', expression: 'object.spec.absent > 1' }],
    },
    do: create(),
    want: { status: 201 },
  },
  'a condition that is false takes precedence over one that fails': {
    spec: {
      ...deny('false'),
      matchConditions: [
        { name: 'broken', expression: 'object.spec.absent > 1' },
        { name: 'never', expression: 'false' },
      ],
    },
    do: create(),
    want: { status: 201 },
  },
  'variables can use each other and are computed only on use': {
    spec: {
      ...deny("variables.used == 'new!'", { messageExpression: 'variables.used' }),
      variables: [
        { name: 'name', expression: 'object.metadata.name' },
        { name: 'used', expression: "variables.name + '!'" },
        { name: 'broken', expression: 'object.spec.absent' },
      ],
    },
    do: create(),
    want: { status: 201 },
  },
  'a variable that fails is reported by its name': {
    spec: { ...deny('variables.broken == 1'), variables: [{ name: 'broken', expression: 'object.spec.absent' }] },
    do: create(),
    want: { status: 422, message: /composited variable "broken" fails to evaluate: no such key: absent/ },
  },
  'request contains the user and the operation': {
    spec: deny(
      "request.operation == 'CREATE' && request.userInfo.username == 'admin' && request.namespace == 'golden' && request.resource.resource == 'gadgets' && request.kind.kind == 'Gadget' && !request.dryRun",
    ),
    do: create(),
    want: { status: 201 },
  },
  'request contains the dry run, and a dry run is evaluated': {
    spec: deny('!request.dryRun', { message: 'dry' }),
    do: (api) => api.call('POST', `${GADGETS}?dryRun=All`, { body: aGadget('new', SPEC) }),
    want: { status: 422, message: /dry/ },
  },
  'namespaceObject is the namespace': {
    spec: deny("namespaceObject.metadata.name == 'golden' && namespaceObject.metadata.labels.team == 'blue'"),
    do: create(),
    want: { status: 201 },
  },
  'authorizer uses the real permissions': {
    // An authorizer check is expensive: the budget of one expression allows two.
    spec: {
      matchConstraints: onWrite,
      validations: [
        {
          expression:
            "authorizer.group('golden.local').resource('gadgets').namespace('golden').check('delete').allowed() && authorizer.requestResource.check('create').allowed()",
        },
        { expression: "!authorizer.serviceAccount('golden', 'nobody').path('/metrics').check('get').allowed()" },
      ],
    },
    do: create(),
    want: { status: 201 },
  },
  'an update has both states': {
    spec: {
      matchConstraints: { resourceRules: [rule(['UPDATE'])] },
      validations: [{ expression: 'object.spec.size >= oldObject.spec.size', message: 'may not shrink' }],
    },
    do: (api) => api.call('PATCH', `${GADGETS}/plain`, { body: { spec: { size: 1 } } }),
    want: { status: 422, message: /may not shrink/ },
  },
  'a delete of a protected object is refused': {
    spec: {
      matchConstraints: onDelete,
      variables: [{ name: 'label', expression: "string(oldObject.metadata.labels['protect'])" }],
      validations: [{ expression: PROTECTED, message: 'it is protected' }],
    },
    do: remove('guarded'),
    want: {
      status: 422,
      message: /^gadgets\.golden\.local "guarded" is forbidden: .*denied request: it is protected$/,
    },
  },
  'a delete of an object without labels is allowed': {
    spec: {
      matchConstraints: onDelete,
      variables: [{ name: 'label', expression: "string(oldObject.metadata.labels['protect'])" }],
      validations: [{ expression: PROTECTED, message: 'it is protected' }],
    },
    do: remove('plain'),
    want: { status: 200 },
  },
  'a dry run of the delete is refused, too': {
    spec: { matchConstraints: onDelete, validations: [{ expression: 'false', message: 'no' }] },
    do: remove('plain', '?dryRun=All'),
    want: { status: 422, message: /no$/ },
  },
  'deletecollection evaluates each object, by its name': {
    spec: {
      matchConstraints: onDelete,
      validations: [{ expression: "oldObject.metadata.name != 'guarded'", message: 'it stays' }],
    },
    do: (api) => api.call('DELETE', GADGETS),
    want: { status: 422, message: /gadgets\.golden\.local "guarded" is forbidden.*it stays/ },
  },
  'a rule for other kinds does not apply': {
    spec: deny('false'),
    do: (api) => api.call('POST', CONFIG_MAPS, { body: configMap('other') }),
    want: { status: 201 },
  },
  'a binding limits where the policy applies': {
    spec: deny('false'),
    binding: { matchResources: { objectSelector: { matchLabels: { strict: 'yes' } } } },
    do: create(),
    want: { status: 201 },
  },
  'and there it applies': {
    spec: deny('false', { message: 'strict' }),
    binding: { matchResources: { objectSelector: { matchLabels: { strict: 'yes' } } } },
    do: create({ strict: 'yes' }),
    want: { status: 422, message: /strict/ },
  },
  'namespaceSelector uses the labels of the namespace': {
    spec: { ...deny('false'), matchConstraints: { ...onWrite, namespaceSelector: { matchLabels: { team: 'red' } } } },
    do: create(),
    want: { status: 201 },
  },
  'the parameter is available to the expression': {
    spec: withParams('object.spec.size <= int(params.data.max)'),
    binding: { paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } },
    do: (api) => api.call('POST', GADGETS, { body: aGadget('new', { size: 9 }) }),
    want: { status: 422, message: /failed expression/ },
  },
  'a missing parameter denies if it is required': {
    spec: withParams('true'),
    binding: { paramRef: { name: 'absent', parameterNotFoundAction: 'Deny' } },
    do: create(),
    want: {
      status: 422,
      message:
        /denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction$/,
    },
  },
  'a missing parameter skips the policy if it is optional': {
    spec: withParams('false'),
    binding: { paramRef: { name: 'absent', parameterNotFoundAction: 'Allow' } },
    do: create(),
    want: { status: 201 },
  },
  'a selector evaluates the policy once for each parameter': {
    spec: withParams('object.spec.size <= int(params.data.max)', {
      messageExpression: "'more than ' + params.data.max",
    }),
    binding: { paramRef: { selector: { matchLabels: { limits: 'yes' } }, parameterNotFoundAction: 'Deny' } },
    do: (api) => api.call('POST', GADGETS, { body: aGadget('new', { size: 7 }) }),
    want: { status: 422, message: /more than 5$/ },
  },
  'an expression that costs too much is an error of its policy': {
    spec: deny(
      '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))',
    ),
    do: create(),
    want: { status: 422, message: /actual cost limit exceeded|running out of cost budget/ },
  },
};

function withParams(expression: string, more: Loose = {}): Loose {
  return { ...deny(expression, more), paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } };
}

function configMap(name: string, data: Record<string, string> = {}, labels?: Record<string, string>): Loose {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data };
}

describe('ValidatingAdmissionPolicy', () => {
  let api: TestApi;
  const audit: AuditRecord[] = [];

  before(async () => {
    api = await startTestApi({ audit: (record) => audit.push(record) });
    await installGadgets(api);
    await api.ok('PATCH', '/api/v1/namespaces/golden', { body: { metadata: { labels: { team: 'blue' } } } });
    await api.ok('POST', CONFIG_MAPS, { body: configMap('limits', { max: '5' }, { limits: 'yes' }) });
    await api.ok('POST', CONFIG_MAPS, { body: configMap('more-limits', { max: '8' }, { limits: 'yes' }) });
  });
  after(() => api.stop());

  beforeEach(async () => {
    await api.call('DELETE', `${POLICIES}/rule`);
    await api.call('DELETE', `${BINDINGS}/rule`);
    await api.ok('DELETE', GADGETS);
    await api.call('DELETE', `${CONFIG_MAPS}/other`);
    await api.ok('POST', GADGETS, { body: aGadget('plain', SPEC) });
    await api.ok('POST', GADGETS, { body: aGadget('guarded', SPEC, { labels: { protect: 'True' } }) });
    audit.length = 0;
  });

  for (const [name, { spec, actions = ['Deny'], binding = {}, do: act, want }] of Object.entries(cases)) {
    it(name, async () => {
      await api.ok('POST', POLICIES, { body: policy(spec) });
      await api.ok('POST', BINDINGS, { body: bindingOf(actions, binding) });
      const { status, body, warnings } = await act(api);
      assert.equal(status, want.status, JSON.stringify(body));
      if (want.message !== undefined) assert.match(body.message, want.message);
      if (want.reason !== undefined) assert.equal(body.reason, want.reason);
      assert.deepEqual(warnings, want.warnings ?? []);
      if (want.audit !== undefined) assert.deepEqual(audit.at(-1)?.annotations, want.audit);
    });
  }

  it('an expression that does not compile is refused when it is written', async () => {
    const { status, body } = await api.call('POST', POLICIES, { body: policy(deny('object.spec.(')) });
    assert.equal(status, 422);
    assert.equal(
      body.message,
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "rule" is invalid: spec.validations[0].expression: Invalid value: "object.spec.(": compilation failed: ERROR: <input>:1:13: Syntax error: no viable alternative at input \'.(\'\n | object.spec.(\n | ............^',
    );
  });

  it('a policy without a binding does not apply, and stops to apply when its binding is deleted', async () => {
    await api.ok('POST', POLICIES, { body: policy(deny('false')) });
    await api.ok('POST', GADGETS, { body: aGadget('one', SPEC) });
    await api.ok('POST', BINDINGS, { body: bindingOf(['Deny'], {}) });
    assert.equal((await api.call('POST', GADGETS, { body: aGadget('two', SPEC) })).status, 422);
    await api.ok('DELETE', `${BINDINGS}/rule`);
    await api.ok('POST', GADGETS, { body: aGadget('two', SPEC) });
  });

  it('type checking reports in the status what the schema does not have', async () => {
    await api.ok('POST', POLICIES, { body: policy(deny("object.spec.colour == 'red' || object.spec.size > 3")) });
    await api.settle();
    const { status } = await api.ok('GET', `${POLICIES}/rule`);
    assert.equal(status.observedGeneration, 1);
    assert.equal(status.typeChecking.expressionWarnings.length, 1);
    assert.equal(status.typeChecking.expressionWarnings[0].fieldRef, 'spec.validations[0].expression');
    assert.match(
      status.typeChecking.expressionWarnings[0].warning,
      /^golden\.local\/v1, Kind=Gadget: .*undefined field 'colour'/,
    );
  });
});

function policy(spec: Loose): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'rule' },
    spec,
  };
}

function bindingOf(validationActions: readonly string[], more: Loose): Loose {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'rule' },
    spec: { policyName: 'rule', validationActions, ...more },
  };
}
