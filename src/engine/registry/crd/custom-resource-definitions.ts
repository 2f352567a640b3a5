/** The kind CustomResourceDefinition. Its controllers (names, establishing, clean-up) belong to the engine. */
import { CRD_COLLECTION, CRD_GROUP, crdSchema } from '#engine/registry/crd/definition.ts';
import { prepareCrd, prepareCrdUpdate } from '#engine/registry/crd/prepare-crd.ts';
import { crdWarnings, validateCrd, validateCrdUpdate } from '#engine/registry/crd/validate-crd.ts';
import { ALL_VERBS, type Resource } from '#engine/registry/resource.ts';

export const customResourceDefinitions: Resource = {
  group: CRD_GROUP,
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  listKind: 'CustomResourceDefinitionList',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  namespaced: false,
  verbs: ALL_VERBS,
  collection: CRD_COLLECTION,
  storageVersion: 'v1',
  schema: crdSchema,
  columns: [
    {
      name: 'Created At',
      // Not a date: kube-apiserver shows the time here instead of the age.
      type: 'string',
      description: 'Time when the object was created. Set by the server.',
      value: ({ metadata }) => metadata.creationTimestamp,
    },
  ],
  status: true,
  generation: true,
  selectableFields: {},
  nameRule: 'subdomain',
  builtIn: true,
  needsRevision: true,
  strategy: {
    prepareForCreate: prepareCrd,
    prepareForUpdate: prepareCrdUpdate,
    validate: validateCrd,
    validateUpdate: validateCrdUpdate,
    warnings: crdWarnings,
  },
};
