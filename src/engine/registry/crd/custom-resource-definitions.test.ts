import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCrd, aVersion } from '#engine/registry/crd/testing/custom-resource-definition.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { asCrd } from '#engine/registry/crd/definition.ts';
import { prepareCrd, prepareCrdUpdate } from '#engine/registry/crd/prepare-crd.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { deepClone } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

describe('prepareCrd', () => {
  it('defaults names, conversion and the stored version', () => {
    const crd = aCrd({ names: { plural: 'gadgets', kind: 'Gadget' }, conversion: undefined });
    prepareCrd(crd);
    assert.deepEqual(crd.spec.names, { plural: 'gadgets', kind: 'Gadget', singular: 'gadget', listKind: 'GadgetList' });
    assert.deepEqual(crd.spec.conversion, { strategy: 'None' });
    assert.deepEqual(crd.status, { conditions: [], acceptedNames: { plural: '', kind: '' }, storedVersions: ['v1'] });
  });

  it('ignores the status of a new definition', () => {
    const crd = aCrd({}, { status: { storedVersions: ['v7'], conditions: [{ type: 'Established', status: 'True' }] } });
    prepareCrd(crd);
    assert.deepEqual(crd.status?.storedVersions, ['v1']);
    assert.deepEqual(crd.status?.conditions, []);
  });

  it('adds a new storage version to the stored ones', () => {
    const versions = [aVersion({ storage: false }), aVersion({ name: 'v2' })];
    const crd = aCrd({ versions }, { status: { storedVersions: ['v1'] } });
    prepareCrdUpdate(crd);
    prepareCrdUpdate(crd);
    assert.deepEqual(crd.status?.storedVersions, ['v1', 'v2']);
  });

  it('leaves an invalid definition to the schema', () => {
    const object: KubeObject = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: {},
    };
    prepareCrd(object);
    assert.equal(object['status'], undefined);
  });
});

describe('the kind CustomResourceDefinition', () => {
  const compiled = compileSchema(customResourceDefinitions.schema, { builtIn: true });

  it('keeps all fields of a definition and its schema', () => {
    const crd = aCrd();
    const before = deepClone(crd);
    compiled.prune(crd, (path) => assert.fail(`${path} is unknown`));
    compiled.applyDefaults(crd);
    assert.deepEqual(crd, before);
    assert.deepEqual(compiled.validate(crd), []);
  });

  it('requires the fields that a definition must have', () => {
    const crd = aCrd();
    crd.spec = { versions: [{}] } as unknown as typeof crd.spec;
    const fields = compiled.validate(crd).map(({ field }) => field);
    assert.deepEqual(fields, [
      'spec.versions[0].name',
      'spec.versions[0].served',
      'spec.versions[0].storage',
      'spec.group',
      'spec.names',
      'spec.scope',
    ]);
  });

  it('shows the creation time instead of the age', () => {
    const [created] = customResourceDefinitions.columns;
    const crd = aCrd();
    crd.metadata.creationTimestamp = '2026-11-15T19:55:45Z';
    assert.equal(created?.name, 'Created At');
    assert.equal(created?.type, 'string');
    assert.equal(created?.value(asCrd(crd), 0), '2026-11-15T19:55:45Z');
  });
});
