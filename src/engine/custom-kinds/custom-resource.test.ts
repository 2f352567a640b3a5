import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCrd, aVersion } from '#engine/registry/crd/testing/custom-resource-definition.ts';
import type { CrdColumn, CrdVersion } from '#engine/registry/crd/definition.ts';
import { resourcesOfCrd } from '#engine/custom-kinds/custom-resource.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { KubeObject } from '#kube/meta.ts';

const aGadget = (fields: Record<string, unknown> = {}): KubeObject => ({
  apiVersion: 'golden.local/v1',
  kind: 'Gadget',
  metadata: { name: 'one', creationTimestamp: '2026-01-01T00:00:00Z' },
  ...fields,
});

function resourceOf(version: Partial<CrdVersion> = {}): Resource {
  const [resource] = resourcesOfCrd(aCrd({ versions: [aVersion(version)] }));
  assert.ok(resource);
  return resource;
}

describe('resourcesOfCrd', () => {
  it('builds a resource for each served version, all in one collection', () => {
    const versions = [
      aVersion({ name: 'v1beta1', storage: false }),
      aVersion({ name: 'v1' }),
      aVersion({ name: 'v0', served: false, storage: false }),
    ];
    const resources = resourcesOfCrd(aCrd({ versions, scope: 'Cluster' }));
    assert.deepEqual(
      resources.map(({ version, storageVersion, collection, namespaced }) => [
        version,
        storageVersion,
        collection,
        namespaced,
      ]),
      [
        ['v1beta1', 'v1', 'gadgets.golden.local', false],
        ['v1', 'v1', 'gadgets.golden.local', false],
      ],
    );
  });

  it('defaults omitted names', () => {
    const [resource] = resourcesOfCrd(aCrd({ names: { plural: 'gadgets', kind: 'Gadget' } }));
    assert.equal(resource?.singular, 'gadget');
    assert.equal(resource?.listKind, 'GadgetList');
    assert.deepEqual(resource?.shortNames, []);
    assert.deepEqual(resource?.categories, []);
  });

  it('uses the accepted names', () => {
    const crd = aCrd();
    crd.status = { acceptedNames: { ...crd.spec.names, shortNames: ['old'] } };
    assert.deepEqual(resourcesOfCrd(crd)[0]?.shortNames, ['old']);
  });

  it('has the subresources of its definition', () => {
    const scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
    assert.equal(resourceOf().status, false);
    const resource = resourceOf({ subresources: { status: {}, scale } });
    assert.equal(resource.status, true);
    assert.deepEqual(resource.scale, scale);
  });

  it('warns about deprecated versions, with the custom text if there is one', () => {
    assert.equal(resourceOf().deprecationWarning, undefined);
    assert.equal(resourceOf({ deprecated: true }).deprecationWarning, 'golden.local/v1 Gadget is deprecated');
    assert.equal(resourceOf({ deprecated: true, deprecationWarning: 'use v2' }).deprecationWarning, 'use v2');
  });

  it('selects by the fields of its definition', () => {
    const { selectableFields } = resourceOf({
      selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.on' }],
    });
    const read = (object: KubeObject) => Object.entries(selectableFields).map(([name, get]) => [name, get(object)]);
    assert.deepEqual(read(aGadget({ spec: { color: 'red', on: false } })), [
      ['spec.color', 'red'],
      ['spec.on', 'false'],
    ]);
    assert.deepEqual(read(aGadget()), [
      ['spec.color', ''],
      ['spec.on', ''],
    ]);
  });
});

const cells: Record<string, { column: Partial<CrdColumn>; object?: Record<string, unknown>; want: unknown }> = {
  'shows a string': { column: {}, object: { spec: { x: 'red' } }, want: 'red' },
  'shows nothing for an absent value': { column: {}, want: undefined },
  'shows nothing for null': { column: {}, object: { spec: { x: null } }, want: undefined },
  'prints anything in a string column': { column: {}, object: { spec: { x: { a: [1] } } }, want: '{"a":[1]}' },
  'prints a number in a string column': { column: {}, object: { spec: { x: 3 } }, want: '3' },
  'truncates fractions in an integer column': { column: { type: 'integer' }, object: { spec: { x: 3.7 } }, want: 3 },
  'shows nothing for text in an integer column': {
    column: { type: 'integer' },
    object: { spec: { x: '3' } },
    want: undefined,
  },
  'shows booleans': { column: { type: 'boolean' }, object: { spec: { x: false } }, want: false },
  'shows the time in a date column': {
    column: { type: 'date', jsonPath: '.metadata.creationTimestamp' },
    want: '2026-01-01T00:00:00Z',
  },
  'supports filters': {
    column: { jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    object: {
      status: {
        conditions: [
          { type: 'A', status: 'x' },
          { type: 'Ready', status: 'True' },
        ],
      },
    },
    want: 'True',
  },
};

describe('columns of custom resources', () => {
  for (const [name, { column, object, want }] of Object.entries(cells)) {
    it(name, () => {
      const definition = { name: 'X', type: 'string', jsonPath: '.spec.x', ...column };
      const { columns } = resourceOf({ additionalPrinterColumns: [definition] });
      assert.deepEqual(
        columns.map((made) => made.value(aGadget(object), 0)),
        [want],
      );
    });
  }

  it('is described by its path', () => {
    const { columns } = resourceOf({
      additionalPrinterColumns: [{ name: 'X', type: 'string', jsonPath: '.spec.x', priority: 1 }],
    });
    assert.equal(columns[0]?.description, 'Custom resource definition column (in JSONPath format): .spec.x');
    assert.equal(columns[0]?.priority, 1);
  });

  it('shows the age if no columns are defined', () => {
    const [age, ...others] = resourceOf().columns;
    assert.deepEqual([age?.name, age?.type, others.length], ['Age', 'date', 0]);
    assert.equal(age?.description, 'Time when the object was created. Set by the server.');
    assert.equal(age?.value(aGadget(), 0), '2026-01-01T00:00:00Z');
  });

  it('drops the columns from an invalid path on', () => {
    const { columns } = resourceOf({
      additionalPrinterColumns: [
        { name: 'A', type: 'string', jsonPath: '.spec.a' },
        { name: 'B', type: 'string', jsonPath: '.spec[?(' },
        { name: 'C', type: 'string', jsonPath: '.spec.c' },
      ],
    });
    assert.deepEqual(
      columns.map(({ name }) => name),
      ['A'],
    );
  });
});

const scales: Record<string, { object: Record<string, unknown>; want: string[] }> = {
  'accepts counts': { object: { spec: { size: 3 }, status: { size: 0, selector: 'a=b' } }, want: [] },
  'accepts absent counts': { object: {}, want: [] },
  'rejects text for a count': {
    object: { spec: { size: 'three' } },
    want: ['.spec.size: Invalid value: 0: .spec.size accessor error: three is of the type string, expected int64'],
  },
  'rejects negative count': {
    object: { status: { size: -1 } },
    want: ['.status.size: Invalid value: -1: should be a non-negative integer'],
  },
  'rejects count over int32': {
    object: { spec: { size: 2147483648 } },
    want: ['.spec.size: Invalid value: 2147483648: should be less than or equal to 2147483647'],
  },
  'accepts only text for a selector': {
    object: { status: { selector: { a: 'b' } } },
    want: [
      '.status.selector: Invalid value: "": .status.selector accessor error: map[a:b] is of the type map[string]interface {}, expected string',
    ],
  },
};

describe('the scale of custom resources', () => {
  const scale = {
    specReplicasPath: '.spec.size',
    statusReplicasPath: '.status.size',
    labelSelectorPath: '.status.selector',
  };
  const { strategy } = resourceOf({ subresources: { scale } });
  for (const [name, { object, want }] of Object.entries(scales)) {
    it(name, () => {
      const got = strategy.validate?.(aGadget(object)).map(({ field, message }) => `${field}: ${message}`);
      assert.deepEqual(got, want);
    });
  }
});
