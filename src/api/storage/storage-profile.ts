/**
 * StorageProfiles: the capabilities of the StorageClass of the same name. The kind belongs to CDI, which fills in the
 * status; without CDI, only the spec that an administrator wrote counts. Pure.
 */
import type { AccessMode, VolumeMode } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { findQuantityError } from '#kube/quantity.ts';
import { list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

/** On profiles: the smallest volume of the class. */
const MINIMUM_SIZE_ANNOTATION = 'cdi.kubevirt.io/minimumSupportedPvcSize';

const claimPropertySet = obj(
  {
    accessModes: list(oneOf(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod']), { maxItems: 4 }),
    volumeMode: oneOf(['Block', 'Filesystem']),
  },
  { required: ['accessModes', 'volumeMode'] },
);

export type ClaimPropertySet = Infer<typeof claimPropertySet>;

/** Only claimPropertySets is used here; the other fields are for CDI. */
const recommended = {
  claimPropertySets: list(claimPropertySet, {
    maxItems: 8,
    description: 'Access modes and volume modes that claims of the class may use.',
  }),
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

/** Returns what CDI found out, or else what the spec says. */
export function claimPropertySetsOf({ spec, status }: StorageProfile): readonly ClaimPropertySet[] {
  return status?.claimPropertySets ?? spec?.claimPropertySets ?? [];
}

/** The modes of a claim of persistent state. */
export interface StateModes {
  readonly volumeMode: VolumeMode;
  readonly accessMode: AccessMode;
}

const DEFAULT_MODES: StateModes = { volumeMode: 'Filesystem', accessMode: 'ReadWriteOnce' };
/** The volume modes of state, in order of preference. State is written, so ReadOnlyMany cannot be used. */
const VOLUME_MODES: readonly VolumeMode[] = ['Filesystem', 'Block'];
const ACCESS_MODES: readonly AccessMode[] = ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'];

/**
 * Returns the modes of a claim of persistent state in the class of the profile. Differs from KubeVirt: ReadWriteOnce is
 * preferred, and Block is used if the class offers nothing else.
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

/** Returns a quantity, or undefined if the profile has no valid one. */
export function minimumSizeOf({ metadata }: StorageProfile): string | undefined {
  const size = metadata.annotations?.[MINIMUM_SIZE_ANNOTATION];
  return findQuantityError(size) === undefined ? size : undefined;
}
