/** The schema of claim specs, of claims and of templates in pods. */
import { accessModes, volumeMode } from '#engine/registry/kinds/shared/access-modes.ts';
import { labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { typedLocalObjectReference, typedObjectReference } from '#engine/registry/kinds/shared/references.ts';
import { volumeResourceRequirements } from '#engine/registry/kinds/shared/resource-requirements.ts';
import { templateMeta } from '#engine/registry/kinds/shared/template-meta.ts';
import { type Infer, overrideOptions, obj, str } from '#kube/schema-dsl.ts';

export const persistentVolumeClaimSpec = obj({
  accessModes,
  dataSource: typedLocalObjectReference,
  dataSourceRef: typedObjectReference,
  resources: overrideOptions(volumeResourceRequirements, { default: {} }),
  selector: labelSelector,
  storageClassName: str(),
  volumeAttributesClassName: str(),
  volumeMode,
  volumeName: str(),
});

export type ClaimSpec = Infer<typeof persistentVolumeClaimSpec>;

export const persistentVolumeClaimTemplate = obj(
  {
    metadata: templateMeta,
    spec: overrideOptions(persistentVolumeClaimSpec, { default: {} }),
  },
  { required: ['spec'] },
);
