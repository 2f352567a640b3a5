/**
 * StorageProfiles: what the volumes of the StorageClass of the same name can be. The kind is CDI's, which fills in their
 * status; where there is no CDI, they say what an administrator says. Pure.
 */
import type { AccessMode, VolumeMode } from '#kube/core-kinds.ts';
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

/** How a claim of persistent state uses its volume. */
export interface StateModes {
  readonly volumeMode: VolumeMode;
  readonly accessMode: AccessMode;
}

const DEFAULT_MODES: StateModes = { volumeMode: 'Filesystem', accessMode: 'ReadWriteOnce' };
/** The first that a class offers is taken. State is written, so that ReadOnlyMany is of no use. */
const VOLUME_MODES: readonly VolumeMode[] = ['Filesystem', 'Block'];
const ACCESS_MODES: readonly AccessMode[] = ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'];

/**
 * Returns the modes of a claim of persistent state in the class of the profile. After the seed, which differs from
 * upstream: ReadWriteOnce is preferred, and Block is taken where a class offers nothing else.
 */
export function stateModesOf(profile: StorageProfile | undefined): StateModes {
  const sets = profile === undefined ? [] : claimPropertySetsOf(profile);
  for (const volumeMode of VOLUME_MODES) {
    const offered = new Set(sets.filter((set) => set.volumeMode === volumeMode).flatMap((set) => set.accessModes));
    const accessMode = ACCESS_MODES.find((mode) => offered.has(mode));
    if (accessMode !== undefined) return { volumeMode, accessMode };
  }
  return DEFAULT_MODES;
}

/** A quantity; undefined where the profile tells none, or something else. */
export function minimumSizeOf({ metadata }: StorageProfile): string | undefined {
  const size = metadata.annotations?.[MINIMUM_SIZE_ANNOTATION];
  return quantityFault(size) === undefined ? size : undefined;
}
