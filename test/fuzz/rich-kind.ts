/** A custom kind that uses most features of a CRD, in two versions, with status and scale. */
import type { Loose } from '#test/support/test-api.ts';

const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const text = { type: 'string' };

const spec: Loose = {
  type: 'object',
  required: ['size'],
  properties: {
    size: { type: 'integer', format: 'int32', minimum: 0, maximum: 10, default: 1 },
    ratio: { type: 'number', multipleOf: 0.5 },
    name: { type: 'string', pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 },
    when: { type: 'string', format: 'date-time', nullable: true },
    bytes: { type: 'string', format: 'byte', default: 'YQ==' },
    color: { type: 'string', enum: ['red', 'green', 'blue'], default: 'red' },
    port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    labels: { type: 'object', additionalProperties: text, maxProperties: 20 },
    selector: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
    tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set', maxItems: 50 },
    plain: { type: 'array', items: { type: 'integer' }, uniqueItems: false },
    parts: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'port'],
      maxItems: 20,
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', maxLength: 20 },
          port: { type: 'integer', default: 80 },
          deep: { type: 'object', properties: { value: { type: 'string', default: 'x' } }, default: {} },
          any: free,
        },
        'x-kubernetes-validations': [{ rule: "self.name != 'forbidden'", message: 'not that name' }],
      },
    },
    template: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    free,
  },
  'x-kubernetes-validations': [
    { rule: "!has(self.name) || self.name != 'bad'", messageExpression: "'refused: ' + self.name" },
    { rule: 'self.size >= oldSelf.size - 5', reason: 'FieldValueForbidden' },
  ],
};

const status: Loose = {
  type: 'object',
  properties: {
    replicas: { type: 'integer' },
    selector: text,
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: { type: 'object', required: ['type'], properties: { type: text, status: text, message: text } },
    },
  },
};

function version(name: string, storage: boolean): Loose {
  return {
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: { type: 'object', required: ['spec'], properties: { spec, status } } },
    subresources: {
      status: {},
      scale: {
        specReplicasPath: '.spec.size',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      },
    },
    additionalPrinterColumns: [
      { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
      { name: 'Parts', type: 'string', jsonPath: '.spec.parts[*].name' },
      { name: 'When', type: 'date', jsonPath: '.spec.when' },
      { name: 'Free', type: 'string', jsonPath: '.spec.free' },
    ],
    selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.size' }],
  };
}

export const RICH_CRD: Loose = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'riches.fuzz.local' },
  spec: {
    group: 'fuzz.local',
    scope: 'Namespaced',
    names: { plural: 'riches', singular: 'rich', kind: 'Rich', listKind: 'RichList', shortNames: ['ri'] },
    versions: [version('v1', true), version('v1beta1', false)],
  },
};

/** A kind without a schema for its objects. */
export const FREE_CRD: Loose = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'frees.fuzz.local' },
  spec: {
    group: 'fuzz.local',
    scope: 'Cluster',
    names: { plural: 'frees', singular: 'free', kind: 'Free', listKind: 'FreeList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: free } }],
  },
};

/** Returns the status that the CRD controller would write. */
export function established({ spec: { names, versions } }: Loose): Loose {
  const time = '2026-01-01T00:00:00Z';
  const condition = (type: string) => ({ type, status: 'True', reason: 'Fuzz', message: '', lastTransitionTime: time });
  return {
    status: {
      acceptedNames: names,
      storedVersions: versions.filter(({ storage }: Loose) => storage).map(({ name }: Loose) => name),
      conditions: [condition('NamesAccepted'), condition('Established')],
    },
  };
}
