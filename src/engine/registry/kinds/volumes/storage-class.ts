/** StorageClass: parameters for provisioning volumes. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkQualifiedName } from '#engine/registry/kinds/shared/formats.ts';
import { topologySelectorTerm } from '#engine/registry/kinds/pod-spec/node-affinity.ts';
import { type FieldError, invalidValue, requiredValue, tooLong } from '#kube/field-error.ts';
import { type KubeObject } from '#kube/meta.ts';
import { bool, list, map, oneOf, str } from '#kube/schema-dsl.ts';
import { isDefaultClass } from '#kube/default-class.ts';

const storageClass = apiType(
  'storage.v1.StorageClass',
  'Parameters for the dynamic provisioning of persistent volumes.',
  {
    provisioner: required(2, str(), 'Name of the provisioner.'),
    parameters: optional(3, map(str()), 'Parameters for the provisioner.'),
    reclaimPolicy: pointer(
      4,
      oneOf(['Delete', 'Retain'], { default: 'Delete' }),
      'Reclaim policy of provisioned volumes: Delete or Retain.',
    ),
    mountOptions: optional(5, list(str(), { atomic: true }), 'Mount options of provisioned volumes.'),
    allowVolumeExpansion: pointer(6, bool(), 'Whether volumes can be expanded.'),
    volumeBindingMode: pointer(
      7,
      oneOf(['Immediate', 'WaitForFirstConsumer'], { default: 'Immediate' }),
      'When volumes are provisioned and bound: Immediate or WaitForFirstConsumer.',
    ),
    allowedTopologies: optional(
      8,
      list(topologySelectorTerm, { atomic: true }),
      'Node topologies where volumes can be provisioned.',
    ),
  },
);

const PARAMETERS_MAX = 512;
const PARAMETERS_MAX_BYTES = 256 * 1024;

export const storageClasses = defineKind({
  group: 'storage.k8s.io',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
  shortNames: ['sc'],
  schema: storageClass,
  columns: [
    { name: 'Name', format: 'name', value: nameWithDefault },
    { name: 'Provisioner', value: ({ provisioner }) => provisioner },
    { name: 'ReclaimPolicy', value: ({ reclaimPolicy }) => reclaimPolicy ?? 'Delete' },
    { name: 'VolumeBindingMode', value: ({ volumeBindingMode }) => volumeBindingMode ?? 'Immediate' },
    { name: 'AllowVolumeExpansion', value: ({ allowVolumeExpansion = false }) => allowVolumeExpansion },
    age,
  ],
  validate: ({ provisioner, parameters }) => [
    ...(provisioner === ''
      ? [requiredValue('provisioner')]
      : checkQualifiedName('provisioner', provisioner.toLowerCase())),
    ...checkParameters(parameters ?? {}),
  ],
  validateUpdate: (object, old) =>
    (['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'] as const).flatMap((field) =>
      checkImmutableValue(field, object[field], old[field]),
    ),
});

/** Marks the default class, like kubectl. */
function nameWithDefault(storageClass: KubeObject): string {
  const name = storageClass.metadata.name ?? '';
  return isDefaultClass(storageClass) ? `${name} (default)` : name;
}

function checkParameters(parameters: Readonly<Record<string, string>>): FieldError[] {
  const entries = Object.entries(parameters);
  if (entries.length > PARAMETERS_MAX) return [tooLong('parameters', PARAMETERS_MAX)];
  const errors = entries
    .filter(([key]) => key === '')
    .map(([key]) => invalidValue('parameters', key, 'field can not be empty.'));
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  if (size > PARAMETERS_MAX_BYTES) errors.push(tooLong('parameters', PARAMETERS_MAX_BYTES));
  return errors;
}
