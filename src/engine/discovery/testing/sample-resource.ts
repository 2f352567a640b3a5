/** Kinds for tests of discovery, OpenAPI and tables: small, and each with a different feature. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { intOrString, list, map, str } from '#kube/schema-dsl.ts';
import { ALL_VERBS, type Resource } from '#engine/registry/resource.ts';
import { groupResource } from '#kube/meta.ts';

type Overrides = Partial<Resource> & Pick<Resource, 'kind' | 'plural'>;

export function aResource(overrides: Overrides): Resource {
  const { kind, plural, group = '', version = 'v1' } = overrides;
  return {
    group,
    version,
    namespaced: true,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    verbs: ALL_VERBS,
    collection: groupResource({ group, plural }),
    storageVersion: version,
    schema: { type: 'object', properties: {} },
    columns: [],
    status: false,
    generation: false,
    selectableFields: {},
    nameRule: 'subdomain',
    builtIn: true,
    strategy: {},
    ...overrides,
  };
}

const container = apiType('core.v1.Container', 'A container.', {
  name: required(1, str(), 'Name of the container.'),
  port: optional(2, intOrString(), 'Port of the container.'),
  limits: optional(3, map(intOrString()), 'Limits of the container.'),
});

const podSpec = apiType('core.v1.PodSpec', 'Desired behavior of a pod.', {
  containers: required(2, list(container, { mergeKey: 'name' }), 'Containers of the pod.'),
});

export const pods = aResource({
  kind: 'Pod',
  plural: 'pods',
  shortNames: ['po'],
  categories: ['all'],
  status: true,
  extraSubresources: [
    { name: 'log', kind: 'Pod', verbs: ['get'] },
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
  ],
  schema: apiType('core.v1.Pod', 'A pod.', { spec: optional(2, podSpec, 'Desired behavior of the pod.') }),
});

export const namespaces = aResource({
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
  shortNames: ['ns'],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
});

export const accessReviews = aResource({
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
  verbs: ['create'],
});

export const definitions = aResource({
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
});

export const gadgets = aResource({
  group: 'golden.local',
  kind: 'Gadget',
  plural: 'gadgets',
  shortNames: ['gd'],
  categories: ['all'],
  builtIn: false,
  status: true,
  scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' },
  schema: {
    type: 'object',
    required: ['spec'],
    properties: {
      spec: {
        type: 'object',
        description: 'desired state',
        required: ['size', 'maybe'],
        properties: {
          size: { type: 'integer', minimum: 1, maximum: 10, default: 3 },
          maybe: { type: 'object', nullable: true, properties: { a: { type: 'string' } } },
          template: {
            type: 'object',
            'x-kubernetes-embedded-resource': true,
            properties: { data: { type: 'string' } },
          },
        },
        'x-kubernetes-validations': [{ rule: 'self.size < 9' }],
      },
      status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  },
});

/** An older version of the same kind. */
export const betaGadgets: Resource = { ...gadgets, version: 'v1beta1', storageVersion: 'v1' };

export const everything: readonly Resource[] = [gadgets, definitions, betaGadgets, pods, accessReviews, namespaces];
