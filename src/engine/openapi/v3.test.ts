import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessReviews, definitions, everything, gadgets, pods } from '#engine/discovery/testing/sample-resource.ts';
import { modelName } from '#engine/openapi/model-names.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { openApiV3Document } from '#engine/openapi/v3.ts';
import type { Resource } from '#engine/registry/resource.ts';

const OBJECT_META = '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';

interface PathOperation {
  operationId: string;
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Record<string, unknown> };
  'x-kubernetes-action': string;
  'x-kubernetes-group-version-kind': unknown;
}

const documentOf = (resource: Resource) => openApiV3Document(everything, resource.group, resource.version)!;

function operationAt(resource: Resource, path: string, method: string): PathOperation {
  const operation = documentOf(resource).paths[path]?.[method];
  assert.ok(operation, `${method} ${path} exists`);
  return operation as PathOperation;
}

const names: Record<string, { resource: Resource; want: string }> = {
  'a core kind': { resource: pods, want: 'io.k8s.api.core.v1.Pod' },
  'a kind of a named group': { resource: accessReviews, want: 'io.k8s.api.authorization.v1.SelfSubjectAccessReview' },
  'a kind with Go types of its own': {
    resource: definitions,
    want: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  },
  'a custom kind': { resource: gadgets, want: 'local.golden.v1.Gadget' },
};
for (const [name, { resource, want }] of Object.entries(names)) {
  test(`model name of ${name}`, () => assert.equal(modelName(resource, resource.kind), want));
}

test('a kind has its group, version and kind, and metadata as a shared reference', () => {
  const { schemas } = documentOf(pods).components;
  const pod = schemas['io.k8s.api.core.v1.Pod']!;
  assert.deepEqual(pod['x-kubernetes-group-version-kind'], [{ group: '', version: 'v1', kind: 'Pod' }]);
  assert.deepEqual(pod.properties!['metadata'], {
    description: "Standard object's metadata.",
    allOf: [{ $ref: OBJECT_META }],
  });
  assert.equal(pod.properties!['kind']!.type, 'string');
  const [spec] = pod.properties!['spec']!.allOf!;
  assert.deepEqual(spec, { $ref: '#/components/schemas/io.k8s.api.core.v1.PodSpec' });
  const containers = schemas['io.k8s.api.core.v1.PodSpec']!.properties!['containers']!;
  assert.equal(containers['x-kubernetes-patch-merge-key'], 'name');
  assert.equal(containers['x-kubernetes-patch-strategy'], 'merge');
});

test('metadata has the descriptions and merge keys of the schema of the server', () => {
  const { schemas } = documentOf(pods).components;
  const meta = schemas[OBJECT_META.split('/').at(-1)!]!;
  assert.equal(schemas[OBJECT_META.split('/').at(-1)!.replace('ObjectMeta', 'Time')]!.format, 'date-time');
  assert.match(meta.properties!['creationTimestamp']!.description!, /Set by the server/);
  const owners = meta.properties!['ownerReferences']!;
  assert.equal(owners['x-kubernetes-patch-merge-key'], 'uid');
  assert.deepEqual(owners.items, { $ref: OBJECT_META.replace('ObjectMeta', 'OwnerReference') });
  const owner = schemas['io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference']!;
  assert.deepEqual(owner.required, ['apiVersion', 'kind', 'name', 'uid']);
});

test('the list of a kind refers to the kind', () => {
  const list = documentOf(gadgets).components.schemas['local.golden.v1.GadgetList']!;
  assert.deepEqual(list.properties!['items']!.items, { $ref: '#/components/schemas/local.golden.v1.Gadget' });
  const gvk = { group: 'golden.local', version: 'v1', kind: 'GadgetList' };
  assert.deepEqual(list['x-kubernetes-group-version-kind'], [gvk]);
});

test('a custom schema keeps its validations, and objects inside it get metadata', () => {
  const spec = documentOf(gadgets).components.schemas['local.golden.v1.Gadget']!.properties!['spec']!;
  assert.equal(spec.description, 'desired state');
  assert.deepEqual(spec.properties!['size'], { type: 'integer', minimum: 1, maximum: 10, default: 3 });
  assert.equal(spec.properties!['maybe']!.nullable, true);
  assert.deepEqual(spec['x-kubernetes-validations'], [{ rule: 'self.size < 9' }]);
  const template = spec.properties!['template']!;
  assert.deepEqual(template.properties!['metadata'], { $ref: OBJECT_META });
  assert.deepEqual(template.required, ['kind', 'apiVersion']);
});

test('the given schema is not modified', () => {
  const before = structuredClone(gadgets.schema);
  documentOf(gadgets);
  assert.deepEqual(gadgets.schema, before);
});

test('every reference in a document resolves', () => {
  for (const resource of everything) {
    const document = documentOf(resource);
    const refs = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g);
    const models = new Set([...refs].map(([, model]) => model!));
    assert.ok(models.size >= 3);
    for (const model of models) assert.ok(document.components.schemas[model], model);
  }
});

test('every PATCH operation has dryRun and fieldValidation', () => {
  let seen = 0;
  for (const resource of everything) {
    for (const [path, item] of Object.entries(documentOf(resource).paths)) {
      if (item['patch'] === undefined) continue;
      seen++;
      const parameters = (item['patch'] as PathOperation).parameters!.filter((parameter) => parameter.in === 'query');
      const given = new Set(parameters.map((parameter) => parameter.name));
      for (const name of ['dryRun', 'fieldManager', 'fieldValidation', 'force']) assert.ok(given.has(name), path);
    }
  }
  assert.ok(seen > 5);
});

interface OperationCase {
  resource: Resource;
  path: string;
  method: string;
  action: string;
  id: string;
}
const GADGETS = '/apis/golden.local/v1/namespaces/{namespace}/gadgets';
const operations: Record<string, OperationCase> = {
  'a list in a namespace': {
    resource: gadgets,
    path: GADGETS,
    method: 'get',
    action: 'list',
    id: 'listGoldenLocalV1NamespacedGadget',
  },
  'a list of all namespaces': {
    resource: gadgets,
    path: '/apis/golden.local/v1/gadgets',
    method: 'get',
    action: 'list',
    id: 'listGoldenLocalV1GadgetForAllNamespaces',
  },
  'a create': {
    resource: pods,
    path: '/api/v1/namespaces/{namespace}/pods',
    method: 'post',
    action: 'post',
    id: 'createCoreV1NamespacedPod',
  },
  'a delete of many': {
    resource: gadgets,
    path: GADGETS,
    method: 'delete',
    action: 'deletecollection',
    id: 'deleteGoldenLocalV1CollectionNamespacedGadget',
  },
  'a read without namespace': {
    resource: definitions,
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}',
    method: 'get',
    action: 'get',
    id: 'readApiextensionsV1CustomResourceDefinition',
  },
  'a replacement of status': {
    resource: gadgets,
    path: `${GADGETS}/{name}/status`,
    method: 'put',
    action: 'put',
    id: 'replaceGoldenLocalV1NamespacedGadgetStatus',
  },
};
for (const [name, { resource, path, method, action, id }] of Object.entries(operations)) {
  test(`operation: ${name}`, () => {
    const operation = operationAt(resource, path, method);
    assert.equal(operation['x-kubernetes-action'], action);
    assert.equal(operation.operationId, id);
    const { group, version, kind } = resource;
    assert.deepEqual(operation['x-kubernetes-group-version-kind'], { group, version, kind });
  });
}

test('scale and the subresources of other groups have their own kind', () => {
  const scale = operationAt(gadgets, `${GADGETS}/{name}/scale`, 'patch');
  const scaleKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
  assert.deepEqual(scale['x-kubernetes-group-version-kind'], scaleKind);
  const eviction = operationAt(pods, '/api/v1/namespaces/{namespace}/pods/{name}/eviction', 'post');
  const evictionKind = { group: 'policy', version: 'v1', kind: 'Eviction' };
  assert.deepEqual(eviction['x-kubernetes-group-version-kind'], evictionKind);
  assert.equal(eviction.requestBody, undefined);
});

test('strategic merge patches are offered for built-in kinds only', () => {
  const strategic = 'application/strategic-merge-patch+json';
  const pod = operationAt(pods, '/api/v1/namespaces/{namespace}/pods/{name}', 'patch');
  const gadget = operationAt(gadgets, `${GADGETS}/{name}`, 'patch');
  assert.ok(strategic in pod.requestBody!.content);
  assert.equal(strategic in gadget.requestBody!.content, false);
});

test('a kind that can only be created has no other operation and no list', () => {
  const document = documentOf(accessReviews);
  assert.deepEqual(
    Object.entries(document.paths).map(([path, item]) => [path, Object.keys(item)]),
    [['/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', ['post']]],
  );
  const lists = Object.keys(document.components.schemas).filter((model) => model.endsWith('ReviewList'));
  assert.deepEqual(lists, []);
});

test('a property named __proto__ stays a property', () => {
  const properties = JSON.parse('{"__proto__":{"type":"string"}}') as Record<string, DocumentSchema>;
  const odd: Resource = {
    ...gadgets,
    schema: { type: 'object', properties: { spec: { type: 'object', properties } } },
  };
  const { components } = openApiV3Document([odd], odd.group, odd.version)!;
  const text = JSON.stringify(components.schemas['local.golden.v1.Gadget']!.properties!['spec']);
  assert.equal(text, '{"type":"object","properties":{"__proto__":{"type":"string"}}}');
});

test('a version that is not served has no document', () => {
  assert.equal(openApiV3Document(everything, 'golden.local', 'v9'), undefined);
});
