/** The spec of claims and of claim templates in pods, with the modes that volumes have as well: types and rules. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { labelSelector, checkLabelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { typedLocalObjectReference, typedObjectReference } from '#engine/registry/kinds/core/references.ts';
import { volumeResourceRequirements } from '#engine/registry/kinds/pod-spec/resource-requirements.ts';
import { templateMeta } from '#engine/registry/kinds/meta/object-meta.ts';
import { type Infer, overrideOptions, str, list, oneOf } from '#kube/schema-dsl.ts';
import { checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkPositiveAmount } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, invalidValue, requiredValue, forbiddenField } from '#kube/field-error.ts';

export const accessModes = list(oneOf(['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']), {
  atomic: true,
});

export const volumeMode = oneOf(['Block', 'Filesystem'], { default: 'Filesystem' });

export function checkAccessModes(field: string, modes: readonly string[] = [], missing = ''): FieldError[] {
  if (modes.length === 0) return [requiredValue(field, missing)];
  if (!modes.includes('ReadWriteOncePod') || modes.every((mode) => mode === 'ReadWriteOncePod')) return [];
  return [forbiddenField(field, 'may not use ReadWriteOncePod with other access modes')];
}

export const persistentVolumeClaimSpec = apiType(
  'core.v1.PersistentVolumeClaimSpec',
  'Desired characteristics of a volume.',
  {
    accessModes: optional(
      1,
      accessModes,
      'Desired access modes: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.',
    ),
    selector: pointer(4, labelSelector, 'Selects the volumes that the claim may bind to.'),
    resources: optional(2, overrideOptions(volumeResourceRequirements, { default: {} }), 'Minimum size of the volume.'),
    volumeName: optional(3, str(), 'Name of the PersistentVolume that the claim is bound to.'),
    storageClassName: pointer(5, str(), 'Name of the StorageClass.'),
    volumeMode: pointer(6, volumeMode, 'Volume mode: Filesystem or Block.'),
    dataSource: pointer(
      7,
      typedLocalObjectReference,
      'Source of the initial data: a volume snapshot or another claim.',
    ),
    dataSourceRef: pointer(
      8,
      typedObjectReference,
      'Source of the initial data: an object of any kind that a volume populator supports.',
    ),
    volumeAttributesClassName: pointer(9, str(), 'Name of the VolumeAttributesClass.'),
  },
);

export type ClaimSpec = Infer<typeof persistentVolumeClaimSpec>;

export const persistentVolumeClaimTemplate = apiType(
  'core.v1.PersistentVolumeClaimTemplate',
  'A template from which PersistentVolumeClaims are created.',
  {
    metadata: optional(1, templateMeta, 'Labels and annotations of the claim.'),
    spec: required(
      2,
      overrideOptions(persistentVolumeClaimSpec, { default: {} }),
      'Desired characteristics of the volume.',
    ),
  },
);

export function checkClaimSpec(field: string, spec: ClaimSpec): FieldError[] {
  const { accessModes, selector, resources, storageClassName } = spec;
  const size = resources?.requests?.['storage'];
  return [
    ...checkAccessModes(`${field}.accessModes`, accessModes, 'at least 1 access mode is required'),
    ...checkLabelSelector(`${field}.selector`, selector),
    ...(size === undefined
      ? [requiredValue(`${field}.resources[storage]`)]
      : checkPositiveAmount(`${field}.resources[storage]`, size)),
    ...(storageClassName ? checkName(`${field}.storageClassName`, storageClassName, 'subdomain') : []),
    ...checkSources(field, spec),
  ];
}

function checkSources(field: string, { dataSource, dataSourceRef }: ClaimSpec): FieldError[] {
  const errors = [
    ...checkSource(`${field}.dataSource`, dataSource),
    ...checkSource(`${field}.dataSourceRef`, dataSourceRef),
  ];
  if (dataSource === undefined || dataSourceRef === undefined) return errors;
  const { namespace, ...ref } = dataSourceRef;
  if (namespace) {
    errors.push(invalidValue(field, 'dataSource', 'may not be specified when dataSourceRef.namespace is specified'));
  } else if (!sameValue(ref, dataSource)) {
    errors.push(invalidValue(field, 'dataSource', 'must match dataSourceRef'));
  }
  return errors;
}

function checkSource(field: string, source: ClaimSpec['dataSourceRef']): FieldError[] {
  if (source === undefined) return [];
  const { apiGroup = '', kind, name, namespace } = source;
  const errors: FieldError[] = [];
  if (name === '') errors.push(requiredValue(`${field}.name`));
  if (kind === '') errors.push(requiredValue(`${field}.kind`));
  if (apiGroup !== '') errors.push(...checkName(`${field}.apiGroup`, apiGroup, 'subdomain'));
  else if (kind !== 'PersistentVolumeClaim') {
    const text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    errors.push(invalidValue(field, kind, text));
  }
  if (namespace) errors.push(...checkName(`${field}.namespace`, namespace, 'label'));
  return errors;
}
