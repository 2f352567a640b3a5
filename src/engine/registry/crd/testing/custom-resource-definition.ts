/** A valid definition, for tests to modify. */
import type { Crd, CrdSpec, CrdVersion } from '#engine/registry/crd/definition.ts';
import type { Schema } from '#kube/schema.ts';

export const gadgetSchema: Schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, maximum: 10 },
        color: { type: 'string', enum: ['red', 'blue'] },
        mode: { type: 'string', default: 'auto' },
      },
    },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

export function aVersion(overrides: Partial<CrdVersion> = {}): CrdVersion {
  return {
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: gadgetSchema },
    ...overrides,
  };
}

export function aCrd(spec: Partial<CrdSpec> = {}, overrides: Partial<Crd> = {}): Crd {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gadgets.golden.local' },
    spec: {
      group: 'golden.local',
      scope: 'Namespaced',
      names: {
        plural: 'gadgets',
        singular: 'gadget',
        kind: 'Gadget',
        listKind: 'GadgetList',
        shortNames: ['gd'],
        categories: ['all'],
      },
      versions: [aVersion()],
      conversion: { strategy: 'None' },
      ...spec,
    },
    ...overrides,
  };
}
