import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdmissionAttributes, AdmissionOperation } from '#engine/admission/admission.ts';
import { anAdmission, anObject } from '#engine/admission/matching/testing/attributes.ts';
import { MatchIndex } from '#engine/admission/matching/match-index.ts';
import { compileMatchResources } from '#engine/admission/matching/match-resources.ts';
import type { ObjectLabels, MatchParts, MatchResourcesLike } from '#engine/admission/matching/match-resources.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { namespaces } from '#engine/registry/kinds/core/namespace.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isApiError } from '#kube/api-error.ts';

function compileMatch(match: MatchResourcesLike, parts: MatchParts): (attributes: AdmissionAttributes) => boolean {
  const compiled = compileMatchResources(match, parts);
  return (attributes) => {
    const { resource, subresource, operation } = attributes;
    return compiled.narrow(resource, subresource, operation)?.(attributes) !== undefined;
  };
}

const gadgets: Resource = {
  ...configMaps,
  group: 'golden.local',
  version: 'v1',
  kind: 'Gadget',
  plural: 'gadgets',
  collection: 'gadgets.golden.local',
  builtIn: false,
};
const betaGadgets: Resource = { ...gadgets, version: 'v1beta1' };
const registry = new Registry([configMaps, namespaces, nodes, pods, gadgets, betaGadgets]);

const LABELS: Record<string, ObjectLabels> = { golden: { env: 'prod' }, plain: {} };
const parts: MatchParts = {
  namespaceLabels: (name) => LABELS[name],
  equivalents: ({ collection, version }) =>
    registry.resources.filter((other) => other.collection === collection && other.version !== version),
};

const anyRule = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] };
const rule = (overrides: object = {}) => ({ ...anyRule, ...overrides });
const only = (overrides: object): MatchResourcesLike => ({ resourceRules: [rule(overrides)] });

interface Case {
  readonly match: MatchResourcesLike;
  readonly request?: Partial<AdmissionAttributes>;
  /** The version in which the request matches, or 'not'. */
  readonly want: 'v1' | 'v1beta1' | 'not';
}

const update: AdmissionOperation = 'UPDATE';
const remove: AdmissionOperation = 'DELETE';
const prod = { matchLabels: { env: 'prod' } };
const labelled = (resource: Resource) => anObject(resource, { env: 'prod' });

const cases: Record<string, Case> = {
  'a rule with wildcards matches everything': { match: only({}), want: 'v1' },
  'absent rules match everything': { match: {}, want: 'v1' },
  'an empty list of rules matches everything': { match: { resourceRules: [] }, want: 'v1' },
  'a listed operation matches': { match: only({ operations: ['CREATE', 'DELETE'] }), want: 'v1' },
  'an unlisted operation does not match': { match: only({ operations: ['UPDATE', 'DELETE'] }), want: 'not' },
  'an empty list of operations matches nothing': { match: only({ operations: [] }), want: 'not' },
  'CONNECT is an ordinary operation': {
    match: only({ operations: ['CONNECT'] }),
    request: { resource: pods, operation: 'CONNECT', subresource: 'exec' },
    want: 'v1',
  },
  'the core group is the empty string': { match: only({ apiGroups: [''] }), want: 'v1' },
  'an unlisted group does not match': { match: only({ apiGroups: ['apps'] }), want: 'not' },
  'a listed version matches': { match: only({ apiVersions: ['v1'] }), want: 'v1' },
  'an unserved version does not match': { match: only({ apiVersions: ['v2'] }), want: 'not' },
  'a listed resource matches': { match: only({ resources: ['pods', 'configmaps'] }), want: 'v1' },
  'an unlisted resource does not match': { match: only({ resources: ['pods'] }), want: 'not' },
  'a resource name is not a prefix': { match: only({ resources: ['configmap'] }), want: 'not' },
  '* matches resources without subresources': { match: only({ resources: ['*'] }), want: 'v1' },
  '* does not match a subresource': {
    match: only({ resources: ['*'] }),
    request: { resource: pods, operation: update, subresource: 'status' },
    want: 'not',
  },
  'a resource does not match its subresource': {
    match: only({ resources: ['pods'] }),
    request: { resource: pods, operation: update, subresource: 'status' },
    want: 'not',
  },
  'pods/status matches the subresource': {
    match: only({ resources: ['pods/status'] }),
    request: { resource: pods, operation: update, subresource: 'status' },
    want: 'v1',
  },
  'pods/status does not match the resource': {
    match: only({ resources: ['pods/status'] }),
    request: { resource: pods, operation: update },
    want: 'not',
  },
  'pods/* matches a subresource': {
    match: only({ resources: ['pods/*'] }),
    request: { resource: pods, operation: update, subresource: 'eviction' },
    want: 'v1',
  },
  'pods/* also matches the resource': {
    match: only({ resources: ['pods/*'] }),
    request: { resource: pods, operation: update },
    want: 'v1',
  },
  'pods/* does not match other resources': { match: only({ resources: ['pods/*'] }), want: 'not' },
  '*/scale matches that subresource of any resource': {
    match: only({ resources: ['*/scale'] }),
    request: { resource: gadgets, operation: update, subresource: 'scale' },
    want: 'v1',
  },
  '*/scale does not match another subresource': {
    match: only({ resources: ['*/scale'] }),
    request: { resource: gadgets, operation: update, subresource: 'status' },
    want: 'not',
  },
  '*/* matches everything': {
    match: only({ resources: ['*/*'] }),
    request: { resource: gadgets, operation: update, subresource: 'status' },
    want: 'v1',
  },
  'scope Namespaced matches namespaced objects': { match: only({ scope: 'Namespaced' }), want: 'v1' },
  'scope Namespaced does not match cluster-scoped objects': {
    match: only({ scope: 'Namespaced' }),
    request: { resource: nodes },
    want: 'not',
  },
  'scope Namespaced does not match namespaces': {
    match: only({ scope: 'Namespaced' }),
    request: { resource: namespaces, namespace: 'golden', name: 'golden' },
    want: 'not',
  },
  'scope Cluster matches namespaces': {
    match: only({ scope: 'Cluster' }),
    request: { resource: namespaces, namespace: 'golden', name: 'golden' },
    want: 'v1',
  },
  'scope Cluster does not match namespaced objects': { match: only({ scope: 'Cluster' }), want: 'not' },
  'scope * matches both': { match: only({ scope: '*' }), request: { resource: nodes }, want: 'v1' },
  'any of several rules is enough': {
    match: { resourceRules: [rule({ resources: ['pods'] }), rule({ resources: ['configmaps'] })] },
    want: 'v1',
  },
  'parts of different rules are not combined': {
    match: {
      resourceRules: [rule({ resources: ['pods'] }), rule({ resources: ['configmaps'], operations: ['DELETE'] })],
    },
    want: 'not',
  },
  'a listed object name matches': { match: only({ resourceNames: ['other', 'thing'] }), want: 'v1' },
  'an unlisted object name does not match': { match: only({ resourceNames: ['other'] }), want: 'not' },
  'a name that is not generated yet does not match': {
    match: only({ resourceNames: ['thing'] }),
    request: { name: '' },
    want: 'not',
  },
  'an excluded resource does not match': {
    match: { ...only({}), excludeResourceRules: [rule({ resources: ['configmaps'] })] },
    want: 'not',
  },
  'a resource matches if another one is excluded': {
    match: { ...only({}), excludeResourceRules: [rule({ resources: ['pods'] })] },
    want: 'v1',
  },
  'exclusion applies without resource rules': {
    match: { excludeResourceRules: [rule({ operations: ['CREATE'] })] },
    want: 'not',
  },
  'an excluded name does not match': {
    match: { excludeResourceRules: [rule({ resourceNames: ['thing'] })] },
    want: 'not',
  },
  'a name matches if another one is excluded': {
    match: { excludeResourceRules: [rule({ resourceNames: ['other'] })] },
    want: 'v1',
  },
  'Equivalent matches another version in the version of the rule': {
    match: { ...only({ apiVersions: ['v1beta1'] }), matchPolicy: 'Equivalent' },
    request: { resource: gadgets },
    want: 'v1beta1',
  },
  'Equivalent is the default': {
    match: only({ apiVersions: ['v1beta1'] }),
    request: { resource: gadgets },
    want: 'v1beta1',
  },
  'Exact does not match another version': {
    match: { ...only({ apiVersions: ['v1beta1'] }), matchPolicy: 'Exact' },
    request: { resource: gadgets },
    want: 'not',
  },
  'the version of the request takes precedence over an earlier rule for another version': {
    match: { resourceRules: [rule({ apiVersions: ['v1beta1'] }), rule({ apiVersions: ['v1'] })] },
    request: { resource: gadgets },
    want: 'v1',
  },
  'an equivalent rule applies if the exact rule has another name': {
    match: {
      resourceRules: [rule({ apiVersions: ['v1'], resourceNames: ['other'] }), rule({ apiVersions: ['v1beta1'] })],
    },
    request: { resource: gadgets },
    want: 'v1beta1',
  },
  'an exclusion of an equivalent version applies': {
    match: { ...only({}), excludeResourceRules: [rule({ apiVersions: ['v1beta1'] })] },
    request: { resource: gadgets },
    want: 'not',
  },
  'an Exact exclusion of another version does not apply': {
    match: { ...only({}), excludeResourceRules: [rule({ apiVersions: ['v1beta1'] })], matchPolicy: 'Exact' },
    request: { resource: gadgets },
    want: 'v1',
  },
  'an empty namespaceSelector matches every namespace': {
    match: { namespaceSelector: {} },
    request: { namespace: 'nowhere' },
    want: 'v1',
  },
  'a namespace with the label matches': { match: { namespaceSelector: prod }, want: 'v1' },
  'a namespace without labels does not match': {
    match: { namespaceSelector: prod },
    request: { namespace: 'plain' },
    want: 'not',
  },
  'a selector for a missing label matches': {
    match: { namespaceSelector: { matchExpressions: [{ key: 'env', operator: 'DoesNotExist' }] } },
    request: { namespace: 'plain' },
    want: 'v1',
  },
  'cluster-scoped objects match every namespaceSelector': {
    match: { namespaceSelector: prod },
    request: { resource: nodes },
    want: 'v1',
  },
  'a new namespace is matched by its own labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'fresh', object: labelled(namespaces) },
    want: 'v1',
  },
  'a new namespace without labels does not match': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'fresh' },
    want: 'not',
  },
  'an update of a namespace is matched by its new labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'golden', operation: update },
    want: 'not',
  },
  'a status update of a namespace is matched by its stored labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'golden', operation: update, subresource: 'status' },
    want: 'v1',
  },
  'a delete of a namespace is matched by its stored labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'golden', operation: remove },
    want: 'v1',
  },
  'a delete of a namespace without labels does not match': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'plain', operation: remove },
    want: 'not',
  },
  'an empty objectSelector matches every object': { match: { objectSelector: {} }, want: 'v1' },
  'an object with the label matches': {
    match: { objectSelector: prod },
    request: { object: labelled(configMaps) },
    want: 'v1',
  },
  'an object without labels does not match': { match: { objectSelector: prod }, want: 'not' },
  'an object that loses its label still matches': {
    match: { objectSelector: prod },
    request: { operation: update, oldObject: labelled(configMaps) },
    want: 'v1',
  },
  'an object that gets its label already matches': {
    match: { objectSelector: prod },
    request: { operation: update, object: labelled(configMaps) },
    want: 'v1',
  },
  'a deleted object with the label matches': {
    match: { objectSelector: prod },
    request: { operation: remove, oldObject: labelled(configMaps) },
    want: 'v1',
  },
  'a deleted object without labels does not match': {
    match: { objectSelector: prod },
    request: { operation: remove },
    want: 'not',
  },
  'a deleted object without labels matches a selector for a missing label': {
    match: { objectSelector: { matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['prod'] }] } },
    request: { operation: remove },
    want: 'v1',
  },
  'both selectors must match': {
    match: { objectSelector: prod, namespaceSelector: prod },
    request: { object: labelled(configMaps), namespace: 'plain' },
    want: 'not',
  },
};

for (const [name, { match, request, want }] of Object.entries(cases)) {
  test(`matching: ${name}`, () => {
    const attributes = anAdmission(request);
    const { resource, subresource, operation } = attributes;
    const select = compileMatchResources(match, parts).narrow(resource, subresource, operation);
    assert.equal(select?.(attributes)?.version ?? 'not', want);
    assert.equal(compileMatch(match, parts)(attributes), want !== 'not');
  });
}

test('a missing namespace is an error', () => {
  const matches = compileMatch({ namespaceSelector: prod }, parts);
  assert.throws(
    () => matches(anAdmission({ namespace: 'nowhere' })),
    (error) => isApiError(error, 'NotFound') && error.message === 'namespaces "nowhere" not found',
  );
});

test('the index computes each match once, until items or kinds change', () => {
  const asked: string[] = [];
  const changing = new Registry([configMaps, pods]);
  const index = new MatchIndex<string>(changing, { exempt: new Set(['pods']) });
  const item = (value: string) => ({
    value,
    match: {
      narrow(resource: Resource, _subresource: string, operation: AdmissionOperation) {
        asked.push(`${value} ${resource.plural} ${operation}`);
        return value === 'never' ? undefined : () => resource;
      },
    },
  });
  const found = (attributes: AdmissionAttributes) => index.candidates(attributes).map(({ value }) => value);

  assert.deepEqual(found(anAdmission()), []);
  index.replace([item('a'), item('never'), item('b')]);
  for (let i = 0; i < 3; i++) assert.deepEqual(found(anAdmission()), ['a', 'b']);
  assert.deepEqual(asked.splice(0), ['a configmaps CREATE', 'never configmaps CREATE', 'b configmaps CREATE']);

  assert.deepEqual(found(anAdmission({ resource: pods })), [], 'exempt');
  found(anAdmission({ operation: remove }));
  assert.equal(asked.splice(0).length, 3, 'another operation must be computed');

  changing.setCustom([gadgets]);
  found(anAdmission());
  assert.equal(asked.splice(0).length, 3, 'changed kinds must be computed again');

  index.replace([item('c')]);
  assert.deepEqual(found(anAdmission()), ['c']);
});
