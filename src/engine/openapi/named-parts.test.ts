import assert from 'node:assert/strict';
import { test } from 'node:test';
import { META, modelName, OBJECT_META } from '#engine/openapi/model-names.ts';
import { NamedParts } from '#engine/openapi/named-parts.ts';
import { allParts } from '#engine/openapi/parts/all-parts.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { reviewResources } from '#engine/registry/kinds/reviews.ts';
import { isRecord } from '#kube/meta.ts';

const resources = [...builtInResources, ...reviewResources, customResourceDefinitions];

/** Every built-in kind, and the parts that they have. */
function everyModel(): Map<string, DocumentSchema> {
  const parts = new NamedParts();
  const kinds = resources.map((resource) => {
    const model = modelName(resource, resource.kind);
    return [model, parts.ofKind(resource.schema, model)] as const;
  });
  return new Map([...kinds, ...parts.definitions]);
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

test('there are words for every field of every built-in kind', () => {
  assert.ok(fields.length > 800);
  assert.deepEqual(
    fields.filter(({ schema }) => schema.description === undefined).map(({ path }) => path),
    [],
  );
});

test('every part of a built-in kind has a name', () => {
  const inline = fields.filter(({ schema }) => {
    const value = schema.items ?? (isRecord(schema.additionalProperties) ? schema.additionalProperties : schema);
    return Object.keys(value.properties ?? {}).length > 0;
  });
  assert.deepEqual(
    inline.map(({ path }) => path),
    [],
  );
});

test('there are no words for what no kind has', () => {
  const models = everyModel();
  const unused = [...allParts()].flatMap(([model, part]) => {
    const known = models.get(model);
    if (known === undefined) return [model];
    return Object.keys(part).flatMap((name) =>
      name === '' || known.properties?.[name] !== undefined ? [] : [`${model}.${name}`],
    );
  });
  assert.deepEqual(unused, []);
});

test('a part is a reference with the words of its field, and stands once', () => {
  const models = everyModel();
  const pod = models.get('io.k8s.api.core.v1.Pod')!;
  assert.deepEqual(pod.properties!['spec'], {
    description: 'What shall run, and where.',
    default: {},
    $ref: 'io.k8s.api.core.v1.PodSpec',
  });
  const spec = models.get('io.k8s.api.core.v1.PodSpec')!;
  const { containers, initContainers } = spec.properties!;
  assert.deepEqual(containers!.items, { $ref: 'io.k8s.api.core.v1.Container' });
  assert.deepEqual(initContainers!.items, containers!.items);
  assert.equal(containers!['x-kubernetes-patch-merge-key'], 'name');
});

test('metadata inside of kinds is the metadata of all', () => {
  const template = everyModel().get('io.k8s.api.core.v1.PodTemplateSpec')!;
  assert.equal(template.properties!['metadata']!.$ref, OBJECT_META);
  assert.ok(new NamedParts().definitions.has(`${META}.OwnerReference`));
});

test('of two schemas that go by one name the second stands where it is used', () => {
  const parts = new NamedParts();
  const kind = (name: string) => ({
    type: 'object' as const,
    properties: { spec: { type: 'object' as const, properties: { [name]: { type: 'string' as const } } } },
  });
  const model = 'io.k8s.api.core.v1.Pod';
  assert.equal(parts.ofKind(kind('a'), model).properties!['spec']!.$ref, `${model}Spec`);
  const second = parts.ofKind(kind('b'), model).properties!['spec']!;
  assert.equal(second.$ref, undefined);
  assert.deepEqual(Object.keys(second.properties!), ['b']);
});
