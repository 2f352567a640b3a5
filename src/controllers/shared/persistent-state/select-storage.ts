/**
 * Selects the storage for the persistent state of VMs: the class of the claim, its modes (api/storage/storage-profile.ts) and
 * its size. Pure.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { minimumSizeOf, stateModesOf, type StateModes, type StorageProfile } from '#api/storage/storage-profile.ts';
import { STORAGE_CLASSES, type StorageClass } from '#kube/core-kinds.ts';
import { groupResource, type Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity } from '#kube/quantity.ts';
import { DEFAULT_CLASS, isDefaultClass } from '#kube/default-class.ts';

interface StorageWorld {
  readonly classes: readonly Stored<StorageClass>[];
  readonly profiles: readonly StorageProfile[];
  /** vmStateStorageClass of the KubeVirt object. */
  readonly configured: string | undefined;
}

export interface StateStorage extends StateModes {
  readonly storageClassName: string;
  readonly size: string;
}

const SIZE = '10Mi';
const VIRT_DEFAULT = 'storageclass.kubevirt.io/is-default-virt-class';
const SETTING = 'spec.configuration.vmStateStorageClass of the KubeVirt object';
const NO_CLASS = `no default storage class found: set ${SETTING}, or annotate a StorageClass with ${VIRT_DEFAULT}=true or ${DEFAULT_CLASS}=true`;

export function selectStorage({ classes, profiles, configured }: StorageWorld): StateStorage | { problem: string } {
  const storageClassName =
    configured || (newestOf(classes.filter(isVirtDefault)) ?? newestOf(classes.filter(isDefaultClass)));
  if (storageClassName === undefined) return { problem: NO_CLASS };
  if (!classes.some(({ metadata }) => metadata.name === storageClassName)) {
    const missing = `${groupResource(STORAGE_CLASSES)} "${storageClassName}" not found`;
    return { problem: `${missing}: it is set in ${SETTING}` };
  }
  const profile = profiles.find(({ metadata }) => metadata.name === storageClassName);
  return { storageClassName, ...stateModesOf(profile), size: sizeOf(profile) };
}

const isVirtDefault = ({ metadata }: Stored<StorageClass>) => metadata.annotations?.[VIRT_DEFAULT] === 'true';

/** Returns the newest of several default classes, then the first by name, as Kubernetes does. */
function newestOf(classes: readonly Stored<StorageClass>[]): string | undefined {
  const [first] = classes
    .map(({ metadata }) => metadata)
    .toSorted((a, b) => compareText(b.creationTimestamp, a.creationTimestamp) || compareText(a.name, b.name));
  return first?.name;
}

function sizeOf(profile: StorageProfile | undefined): string {
  const minimum = profile === undefined ? undefined : minimumSizeOf(profile);
  const isLarger = minimum !== undefined && compareQuantities(parseQuantity(minimum), parseQuantity(SIZE)) > 0;
  return isLarger ? minimum : SIZE;
}
