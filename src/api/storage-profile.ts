/**
 * StorageProfiles: what the volumes of the StorageClass of the same name can be. The kind is CDI's, which fills in their
 * status; where there is no CDI, they say what an administrator says. Pure.
 */
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { quantityFault } from '#kube/quantity.ts';
import { list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

/** On profiles: no volume of the class is smaller. */
export const MINIMUM_SIZE_ANNOTATION = 'cdi.kubevirt.io/minimumSupportedPvcSize';

const claimPropertySet = obj(
  {
    accessModes: list(oneOf(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod']), { maxItems: 4 }),
    volumeMode: oneOf(['Block', 'Filesystem']),
  },
  { required: ['accessModes', 'volumeMode'] },
);

export type ClaimPropertySet = Infer<typeof claimPropertySet>;

/** Beside the first, for CDI alone. */
const recommended = {
  claimPropertySets: list(claimPropertySet, { maxItems: 8, description: 'What claims of the class may ask for.' }),
  cloneStrategy: str(),
  dataImportCronSourceFormat: str(),
  snapshotClass: str(),
};

export const storageProfileSpec = obj(recommended);
export const storageProfileStatus = obj({ ...recommended, provisioner: str(), storageClass: str() });

export interface StorageProfile extends KubeObject {
  spec?: Infer<typeof storageProfileSpec>;
  status?: Infer<typeof storageProfileStatus>;
}

export const STORAGE_PROFILES: ResourceType<StorageProfile> = {
  group: 'cdi.kubevirt.io',
  version: 'v1beta1',
  kind: 'StorageProfile',
  plural: 'storageprofiles',
  namespaced: false,
};

/** What CDI found out; where it did not, or is not there, what was asked of it. */
export function claimPropertySetsOf({ spec, status }: StorageProfile): readonly ClaimPropertySet[] {
  return status?.claimPropertySets ?? spec?.claimPropertySets ?? [];
}

/** A quantity; undefined where the profile tells none, or something else. */
export function minimumSizeOf({ metadata }: StorageProfile): string | undefined {
  const size = metadata.annotations?.[MINIMUM_SIZE_ANNOTATION];
  return quantityFault(size) === undefined ? size : undefined;
}
