/** The schema of claim specs, of claims and of templates in pods. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { accessModes, volumeMode } from '#engine/registry/kinds/volumes/access-modes.ts';
import { labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { typedLocalObjectReference, typedObjectReference } from '#engine/registry/kinds/core/references.ts';
import { volumeResourceRequirements } from '#engine/registry/kinds/pod-spec/resource-requirements.ts';
import { templateMeta } from '#engine/registry/kinds/meta/object-meta.ts';
import { type Infer, overrideOptions, str } from '#kube/schema-dsl.ts';

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
