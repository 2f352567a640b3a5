/** The wish for storage, as a claim and as a template inside a pod. */
import { labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { typedLocalObjectReference, typedObjectReference } from '#engine/registry/kinds/shared/references.ts';
import { volumeResourceRequirements } from '#engine/registry/kinds/shared/resource-requirements.ts';
import { templateMeta } from '#engine/registry/kinds/shared/template-meta.ts';
import { list, noted, obj, oneOf, str } from '#kube/schema-dsl.ts';

export const persistentVolumeClaimSpec = obj({
  accessModes: list(oneOf(['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']), {
    atomic: true,
  }),
  dataSource: typedLocalObjectReference,
  dataSourceRef: typedObjectReference,
  resources: noted(volumeResourceRequirements, { default: {} }),
  selector: labelSelector,
  storageClassName: str(),
  volumeAttributesClassName: str(),
  volumeMode: oneOf(['Block', 'Filesystem'], { default: 'Filesystem' }),
  volumeName: str(),
});

export const persistentVolumeClaimTemplate = obj(
  {
    metadata: templateMeta,
    spec: noted(persistentVolumeClaimSpec, { default: {} }),
  },
  { required: ['spec'] },
);
