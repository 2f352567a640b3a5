/** Invariants of every built-in kind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { anObject, cellsOf } from '#engine/registry/kinds/testing/sample-kind.ts';
import { ALL_VERBS, type Resource } from '#engine/registry/resource.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { groupResource } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

const EXPECTED = `
v1: configmaps(cm) events(ev) limitranges(limits) namespaces(ns) nodes(no) persistentvolumeclaims(pvc) persistentvolumes(pv) pods(po) resourcequotas(quota) secrets serviceaccounts(sa) services(svc)
admissionregistration.k8s.io/v1: mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations
apiregistration.k8s.io/v1: apiservices
apps/v1: controllerrevisions
batch/v1: jobs
coordination.k8s.io/v1: leases
discovery.k8s.io/v1: endpointslices
policy/v1: poddisruptionbudgets(pdb)
rbac.authorization.k8s.io/v1: clusterrolebindings clusterroles rolebindings roles
scheduling.k8s.io/v1: priorityclasses(pc)
storage.k8s.io/v1: storageclasses(sc)
`.trim();

test('the built-in kinds and their short names', () => {
  const byGroup = new Map<string, string[]>();
  for (const { group, version, plural, shortNames } of builtInResources) {
    const groupVersion = group === '' ? version : `${group}/${version}`;
    const short = shortNames.length === 0 ? '' : `(${shortNames.join(',')})`;
    byGroup.set(groupVersion, [...(byGroup.get(groupVersion) ?? []), plural + short]);
  }
  const lines = [...byGroup].map(([group, names]) => `${group}: ${names.join(' ')}`);
  assert.equal(lines.join('\n'), EXPECTED);
});

test('every resource name is unique', () => {
  const names = builtInResources.flatMap((r) => [r.plural, ...r.shortNames, r.singular]);
  assert.deepEqual(
    names.filter((name, i) => names.indexOf(name) !== i),
    [],
  );
  const collections = builtInResources.map((r) => r.collection);
  assert.equal(new Set(collections).size, collections.length);
});

/** Yields every schema in a tree with its path. */
function* schemasIn(schema: Schema, path: string): Generator<[string, Schema]> {
  yield [path, schema];
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* schemasIn(property, `${path}.${name}`);
  if (schema.items !== undefined) yield* schemasIn(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === 'object') yield* schemasIn(schema.additionalProperties, `${path}{}`);
}

function schemaMistakes(path: string, schema: Schema): string[] {
  const mistakes: string[] = [];
  for (const name of schema.required ?? []) {
    if (schema.properties?.[name] === undefined) mistakes.push(`${path}: required ${name} is not a property`);
  }
  const mergeKey = schema['x-kubernetes-patch-merge-key'];
  const keys = [...(schema['x-kubernetes-list-map-keys'] ?? []), ...(mergeKey === undefined ? [] : [mergeKey])];
  for (const key of keys) {
    if (schema.items?.properties?.[key] === undefined) mistakes.push(`${path}: key ${key} is not a field of the items`);
  }
  if (schema.default !== undefined && schema.enum !== undefined && !schema.enum.includes(schema.default)) {
    mistakes.push(`${path}: default is not in the enum`);
  }
  if (schema.type === 'array' && schema.items === undefined) mistakes.push(`${path}: no items`);
  return mistakes;
}

for (const resource of builtInResources) {
  const { kind, plural } = resource;

  test(`${kind}: names, verbs and scope are valid`, () => {
    assert.equal(resource.singular, kind.toLowerCase());
    assert.equal(resource.listKind, `${kind}List`);
    assert.match(plural, /^[a-z]+s$/);
    assert.equal(resource.collection, groupResource(resource));
    assert.ok(resource.builtIn);
    assert.deepEqual(
      resource.verbs.filter((verb) => !ALL_VERBS.includes(verb)),
      [],
    );
    assert.equal(resource.verbs.includes('deletecollection'), kind !== 'Namespace');
    assert.equal(resource.status, resource.schema.properties?.['status'] !== undefined);
    const subresources = (resource.extraSubresources ?? []).map(({ name }) => name);
    assert.equal(subresources.includes('status'), false, 'status must not be an extra subresource');
  });

  test(`${kind}: its schema is valid and omits the common fields`, () => {
    const found = [...schemasIn(resource.schema, kind)];
    assert.deepEqual(
      found.flatMap(([path, schema]) => schemaMistakes(path, schema)),
      [],
    );
    for (const field of ['apiVersion', 'kind', 'metadata']) {
      assert.equal(resource.schema.properties?.[field], undefined, field);
    }
  });

  test(`${kind}: defaults satisfy its schema and are idempotent`, () => {
    const { applyDefaults, validate } = compileSchema(resource.schema, { builtIn: true });
    const object = anObject(resource, {});
    applyDefaults(object);
    resource.strategy.prepareForCreate?.(object);
    const once = structuredClone(object);
    applyDefaults(object);
    resource.strategy.prepareForUpdate?.(object, structuredClone(once));
    assert.deepEqual(object, once);
    const wrong = validate(object).filter(({ reason }) => reason !== 'FieldValueRequired');
    assert.deepEqual(wrong, []);
  });

  test(`${kind}: validation, columns and selectors accept an empty object`, () => {
    const object = anObject(resource, {});
    compileSchema(resource.schema, { builtIn: true }).applyDefaults(object);
    resource.strategy.prepareForCreate?.(object);
    assert.ok(Array.isArray(resource.strategy.validate?.(object) ?? []));
    assert.ok(Array.isArray(resource.strategy.validateUpdate?.(object, structuredClone(object)) ?? []));
    for (const read of Object.values(resource.selectableFields)) assert.equal(typeof read(object), 'string');
  });

  test(`${kind}: columns have unique names and an age`, () => {
    const names = resource.columns.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    assert.equal(names.includes('Age') || names.includes('Created At') || names.includes('Last Seen'), true);
    if (names.includes('Age')) assert.equal(ageOf(resource), '5m');
  });
}

function ageOf(resource: Resource): unknown {
  const age = { ...resource, columns: resource.columns.filter(({ name }) => name === 'Age') };
  return cellsOf(age, {})['Age'];
}

test('atomic maps and lists of patches and applies', () => {
  const mapTypes = (kind: string, ...path: string[]) => {
    let schema = builtInResources.find((resource) => resource.kind === kind)?.schema;
    for (const name of path) schema = schema?.properties?.[name];
    return schema?.['x-kubernetes-map-type'] ?? 'granular';
  };
  assert.equal(mapTypes('Pod', 'spec', 'nodeSelector'), 'atomic');
  assert.equal(mapTypes('Service', 'spec', 'selector'), 'atomic');
  assert.equal(mapTypes('PersistentVolume', 'spec', 'claimRef'), 'granular');
  assert.equal(mapTypes('Event', 'involvedObject'), 'atomic');
});
