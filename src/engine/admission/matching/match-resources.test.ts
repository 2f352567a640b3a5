import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdmissionAttributes, Operation } from '#engine/admission/admission.ts';
import { anAdmission, anObject } from '#engine/admission/matching/attributes.fixture.ts';
import { MatchIndex } from '#engine/admission/matching/match-index.ts';
import { compileMatch, compileMatchResources } from '#engine/admission/matching/match-resources.ts';
import type { Labels, MatchParts, MatchResourcesLike } from '#engine/admission/matching/match-resources.ts';
import { configMaps } from '#engine/registry/kinds/config-map.ts';
import { namespaces } from '#engine/registry/kinds/namespace.ts';
import { nodes } from '#engine/registry/kinds/node.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isApiError } from '#kube/api-error.ts';

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

const LABELS: Record<string, Labels> = { golden: { env: 'prod' }, plain: {} };
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
  /** The version in which it is seen, or that it is not. */
  readonly want: 'v1' | 'v1beta1' | 'not';
}

const update: Operation = 'UPDATE';
const remove: Operation = 'DELETE';
const prod = { matchLabels: { env: 'prod' } };
const labelled = (resource: Resource) => anObject(resource, { env: 'prod' });

const cases: Record<string, Case> = {
  'a rule with wildcards sees everything': { match: only({}), want: 'v1' },
  'no rules see everything': { match: {}, want: 'v1' },
  'an empty list of rules sees everything': { match: { resourceRules: [] }, want: 'v1' },
  'the operation is named': { match: only({ operations: ['CREATE', 'DELETE'] }), want: 'v1' },
  'another operation is named': { match: only({ operations: ['UPDATE', 'DELETE'] }), want: 'not' },
  'no operation is named': { match: only({ operations: [] }), want: 'not' },
  'CONNECT is an operation like others': {
    match: only({ operations: ['CONNECT'] }),
    request: { resource: pods, operation: 'CONNECT', subresource: 'exec' },
    want: 'v1',
  },
  'the core group is the empty one': { match: only({ apiGroups: [''] }), want: 'v1' },
  'another group is named': { match: only({ apiGroups: ['apps'] }), want: 'not' },
  'the version is named': { match: only({ apiVersions: ['v1'] }), want: 'v1' },
  'another version is named, which is not served': { match: only({ apiVersions: ['v2'] }), want: 'not' },
  'the resource is named': { match: only({ resources: ['pods', 'configmaps'] }), want: 'v1' },
  'another resource is named': { match: only({ resources: ['pods'] }), want: 'not' },
  'a name is not a prefix': { match: only({ resources: ['configmap'] }), want: 'not' },
  '* means resources without subresources': { match: only({ resources: ['*'] }), want: 'v1' },
  '* does not mean a subresource': {
    match: only({ resources: ['*'] }),
    request: { resource: pods, operation: update, subresource: 'status' },
    want: 'not',
  },
  'a resource does not mean its subresource': {
    match: only({ resources: ['pods'] }),
    request: { resource: pods, operation: update, subresource: 'status' },
    want: 'not',
  },
  'pods/status means the subresource': {
    match: only({ resources: ['pods/status'] }),
    request: { resource: pods, operation: update, subresource: 'status' },
    want: 'v1',
  },
  'pods/status does not mean the resource': {
    match: only({ resources: ['pods/status'] }),
    request: { resource: pods, operation: update },
    want: 'not',
  },
  'pods/* means a subresource': {
    match: only({ resources: ['pods/*'] }),
    request: { resource: pods, operation: update, subresource: 'eviction' },
    want: 'v1',
  },
  'pods/* means the resource, too': {
    match: only({ resources: ['pods/*'] }),
    request: { resource: pods, operation: update },
    want: 'v1',
  },
  'pods/* does not mean others': { match: only({ resources: ['pods/*'] }), want: 'not' },
  '*/scale means that subresource of anything': {
    match: only({ resources: ['*/scale'] }),
    request: { resource: gadgets, operation: update, subresource: 'scale' },
    want: 'v1',
  },
  '*/scale does not mean another subresource': {
    match: only({ resources: ['*/scale'] }),
    request: { resource: gadgets, operation: update, subresource: 'status' },
    want: 'not',
  },
  '*/* means everything': {
    match: only({ resources: ['*/*'] }),
    request: { resource: gadgets, operation: update, subresource: 'status' },
    want: 'v1',
  },
  'scope Namespaced means things in namespaces': { match: only({ scope: 'Namespaced' }), want: 'v1' },
  'scope Namespaced leaves cluster-wide things out': {
    match: only({ scope: 'Namespaced' }),
    request: { resource: nodes },
    want: 'not',
  },
  'scope Namespaced leaves namespaces out': {
    match: only({ scope: 'Namespaced' }),
    request: { resource: namespaces, namespace: 'golden', name: 'golden' },
    want: 'not',
  },
  'scope Cluster means namespaces': {
    match: only({ scope: 'Cluster' }),
    request: { resource: namespaces, namespace: 'golden', name: 'golden' },
    want: 'v1',
  },
  'scope Cluster leaves things in namespaces out': { match: only({ scope: 'Cluster' }), want: 'not' },
  'scope * means both': { match: only({ scope: '*' }), request: { resource: nodes }, want: 'v1' },
  'any of several rules is enough': {
    match: { resourceRules: [rule({ resources: ['pods'] }), rule({ resources: ['configmaps'] })] },
    want: 'v1',
  },
  'parts of different rules do not add up': {
    match: {
      resourceRules: [rule({ resources: ['pods'] }), rule({ resources: ['configmaps'], operations: ['DELETE'] })],
    },
    want: 'not',
  },
  'a resource name that is meant': { match: only({ resourceNames: ['other', 'thing'] }), want: 'v1' },
  'a resource name that is not meant': { match: only({ resourceNames: ['other'] }), want: 'not' },
  'a name that is still to be generated is not meant': {
    match: only({ resourceNames: ['thing'] }),
    request: { name: '' },
    want: 'not',
  },
  'an excluded resource': {
    match: { ...only({}), excludeResourceRules: [rule({ resources: ['configmaps'] })] },
    want: 'not',
  },
  'another resource is excluded': {
    match: { ...only({}), excludeResourceRules: [rule({ resources: ['pods'] })] },
    want: 'v1',
  },
  'excluded from everything': { match: { excludeResourceRules: [rule({ operations: ['CREATE'] })] }, want: 'not' },
  'an excluded name': { match: { excludeResourceRules: [rule({ resourceNames: ['thing'] })] }, want: 'not' },
  'another name is excluded': { match: { excludeResourceRules: [rule({ resourceNames: ['other'] })] }, want: 'v1' },
  'Equivalent sees another version in the version of the rule': {
    match: { ...only({ apiVersions: ['v1beta1'] }), matchPolicy: 'Equivalent' },
    request: { resource: gadgets },
    want: 'v1beta1',
  },
  'Equivalent is the default': {
    match: only({ apiVersions: ['v1beta1'] }),
    request: { resource: gadgets },
    want: 'v1beta1',
  },
  'Exact does not see another version': {
    match: { ...only({ apiVersions: ['v1beta1'] }), matchPolicy: 'Exact' },
    request: { resource: gadgets },
    want: 'not',
  },
  'the version of the request wins over an earlier rule for another one': {
    match: { resourceRules: [rule({ apiVersions: ['v1beta1'] }), rule({ apiVersions: ['v1'] })] },
    request: { resource: gadgets },
    want: 'v1',
  },
  'a rule for the version of the request but another name leaves it to the equivalent one': {
    match: {
      resourceRules: [rule({ apiVersions: ['v1'], resourceNames: ['other'] }), rule({ apiVersions: ['v1beta1'] })],
    },
    request: { resource: gadgets },
    want: 'v1beta1',
  },
  'an equivalent version is excluded': {
    match: { ...only({}), excludeResourceRules: [rule({ apiVersions: ['v1beta1'] })] },
    request: { resource: gadgets },
    want: 'not',
  },
  'an equivalent version is excluded, but only exactly': {
    match: { ...only({}), excludeResourceRules: [rule({ apiVersions: ['v1beta1'] })], matchPolicy: 'Exact' },
    request: { resource: gadgets },
    want: 'v1',
  },
  'an empty namespaceSelector means every namespace': {
    match: { namespaceSelector: {} },
    request: { namespace: 'nowhere' },
    want: 'v1',
  },
  'the namespace has the label': { match: { namespaceSelector: prod }, want: 'v1' },
  'the namespace has no labels': { match: { namespaceSelector: prod }, request: { namespace: 'plain' }, want: 'not' },
  'a namespace without the label is meant': {
    match: { namespaceSelector: { matchExpressions: [{ key: 'env', operator: 'DoesNotExist' }] } },
    request: { namespace: 'plain' },
    want: 'v1',
  },
  'cluster-wide things are in every namespace': {
    match: { namespaceSelector: prod },
    request: { resource: nodes },
    want: 'v1',
  },
  'a new namespace is matched by the labels that it brings': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'fresh', object: labelled(namespaces) },
    want: 'v1',
  },
  'a new namespace without labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'fresh' },
    want: 'not',
  },
  'an update of a namespace is matched by its new labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'golden', operation: update },
    want: 'not',
  },
  'a status of a namespace is matched by the labels that are stored': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'golden', operation: update, subresource: 'status' },
    want: 'v1',
  },
  'a delete of a namespace is matched by the labels that are stored': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'golden', operation: remove },
    want: 'v1',
  },
  'a delete of a namespace without labels': {
    match: { namespaceSelector: prod },
    request: { resource: namespaces, name: 'plain', operation: remove },
    want: 'not',
  },
  'an empty objectSelector means every object': { match: { objectSelector: {} }, want: 'v1' },
  'the object has the label': {
    match: { objectSelector: prod },
    request: { object: labelled(configMaps) },
    want: 'v1',
  },
  'the object has no labels': { match: { objectSelector: prod }, want: 'not' },
  'an object that loses its label still counts': {
    match: { objectSelector: prod },
    request: { operation: update, oldObject: labelled(configMaps) },
    want: 'v1',
  },
  'an object that gets its label counts already': {
    match: { objectSelector: prod },
    request: { operation: update, object: labelled(configMaps) },
    want: 'v1',
  },
  'a deleted object with the label': {
    match: { objectSelector: prod },
    request: { operation: remove, oldObject: labelled(configMaps) },
    want: 'v1',
  },
  'a deleted object without labels': { match: { objectSelector: prod }, request: { operation: remove }, want: 'not' },
  'a deleted object without labels is one without this label': {
    match: { objectSelector: { matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['prod'] }] } },
    request: { operation: remove },
    want: 'v1',
  },
  'both selectors must hold': {
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

test('a namespace that is not there is told, not guessed', () => {
  const matches = compileMatch({ namespaceSelector: prod }, parts);
  assert.throws(
    () => matches(anAdmission({ namespace: 'nowhere' })),
    (error) => isApiError(error, 'NotFound') && error.message === 'namespaces "nowhere" not found',
  );
});

test('the index asks each item once for a sort of request, until items or kinds change', () => {
  const asked: string[] = [];
  const changing = new Registry([configMaps, pods]);
  const index = new MatchIndex<string>(changing, { exempt: new Set(['pods']) });
  const item = (value: string) => ({
    value,
    match: {
      narrow(resource: Resource, _subresource: string, operation: Operation) {
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
  assert.equal(asked.splice(0).length, 3, 'another operation is another question');

  changing.setCustom([gadgets]);
  found(anAdmission());
  assert.equal(asked.splice(0).length, 3, 'the kinds changed');

  index.replace([item('c')]);
  assert.deepEqual(found(anAdmission()), ['c']);
});
