import assert from 'node:assert/strict';
import { test } from 'node:test';
import { META, modelName, OBJECT_META } from '#engine/openapi/model-names.ts';
import { NamedTypes } from '#engine/openapi/named-types.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { apiType, optional } from '#engine/registry/kinds/api-type.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { reviewResources } from '#engine/registry/kinds/access/reviews.ts';
import { isRecord } from '#kube/meta.ts';
import { obj, str } from '#kube/schema-dsl.ts';

const resources = [...builtInResources, ...reviewResources, customResourceDefinitions];

/** Returns the schemas of all built-in kinds and of their nested types, by model name. */
function everyModel(): Map<string, DocumentSchema> {
  const types = new NamedTypes();
  const kinds = resources.map((resource) => {
    const model = modelName(resource, resource.kind);
    return [model, types.ofKind(resource.schema)] as const;
  });
  return new Map([...kinds, ...types.definitions]);
}

interface Field {
  readonly path: string;
  readonly schema: DocumentSchema;
}

function* fieldsOf(path: string, schema: DocumentSchema): Generator<Field> {
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield { path: `${path}.${name}`, schema: child };
    yield* fieldsOf(`${path}.${name}`, child);
  }
  if (schema.items !== undefined) yield* fieldsOf(`${path}[]`, schema.items);
  if (isRecord(schema.additionalProperties)) yield* fieldsOf(`${path}{}`, schema.additionalProperties);
}

const fields = [...everyModel()].flatMap(([model, schema]) => [...fieldsOf(model, schema)]);

test('every field of every built-in kind has a description', () => {
  assert.ok(fields.length > 800);
  assert.deepEqual(
    fields.filter(({ schema }) => schema.description === undefined).map(({ path }) => path),
    [],
  );
});

test('every named type has a description', () => {
  const undescribed = [...everyModel()].filter(([, { description = '' }]) => description === '');
  assert.deepEqual(
    undescribed.map(([model]) => model),
    [],
  );
});

test('every nested object of a built-in kind is a named type', () => {
  const inline = fields.filter(({ schema }) => {
    const value = schema.items ?? (isRecord(schema.additionalProperties) ? schema.additionalProperties : schema);
    return Object.keys(value.properties ?? {}).length > 0;
  });
  assert.deepEqual(
    inline.map(({ path }) => path),
    [],
  );
});

test('a nested type is defined once and referenced with the description of the field', () => {
  const models = everyModel();
  const pod = models.get('io.k8s.api.core.v1.Pod')!;
  assert.deepEqual(pod.properties!['spec'], {
    description: 'Desired behavior of the pod.',
    default: {},
    $ref: 'io.k8s.api.core.v1.PodSpec',
  });
  const spec = models.get('io.k8s.api.core.v1.PodSpec')!;
  const { containers, initContainers } = spec.properties!;
  assert.deepEqual(containers!.items, { $ref: 'io.k8s.api.core.v1.Container' });
  assert.deepEqual(initContainers!.items, containers!.items);
  assert.equal(containers!['x-kubernetes-patch-merge-key'], 'name');
});

test('nested metadata refers to the shared ObjectMeta', () => {
  const template = everyModel().get('io.k8s.api.core.v1.PodTemplateSpec')!;
  assert.equal(template.properties!['metadata']!.$ref, OBJECT_META);
  assert.ok(new NamedTypes().definitions.has(`${META}.OwnerReference`));
});

test('the second schema of a model name is inlined', () => {
  const types = new NamedTypes();
  const kind = (name: string) =>
    obj({ spec: apiType('core.v1.PodSpec', 'A spec.', { [name]: optional(1, str(), 'A field.') }) });
  assert.equal(types.ofKind(kind('a')).properties!['spec']!.$ref, 'io.k8s.api.core.v1.PodSpec');
  const second = types.ofKind(kind('b')).properties!['spec']!;
  assert.equal(second.$ref, undefined);
  assert.deepEqual(Object.keys(second.properties!), ['b']);
});
