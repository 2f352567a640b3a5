/** Selects the volume for a claim. Pure. */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import { classNameOf } from '#kube/storage-class-name.ts';
import { compileNodeSelector } from '#engine/controllers/placement/node-selector.ts';
import type { NodeSelector } from '#engine/controllers/placement/node-selector.ts';
import type { PersistentVolume, PersistentVolumeClaim, Quantities } from '#kube/core-kinds.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/selectors/label-selector.ts';
import { isRecord, type Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity, type Quantity } from '#kube/quantity.ts';

type StoredVolume = Stored<PersistentVolume>;
type StoredClaim = Stored<PersistentVolumeClaim>;

interface VolumeChoice {
  /** Unclaimed volumes of the claim's class, and volumes that are reserved for it. */
  readonly candidates: readonly StoredVolume[];
  /** True if the class binds only when the first consumer is scheduled. */
  readonly waitsForConsumer: boolean;
  /** The node of the first consumer, if it is known. */
  readonly node?: EngineNode;
}

/** Reports whether the volume's claimRef refers to this claim: by name, and by uid if it has one. */
export function isReservedFor({ spec }: PersistentVolume, { metadata }: StoredClaim): boolean {
  const { claimRef } = spec;
  if (claimRef?.name !== metadata.name || claimRef.namespace !== metadata.namespace) return false;
  return !claimRef.uid || claimRef.uid === metadata.uid;
}

/**
 * Returns the volume that is reserved for the claim, or else the smallest one that fits. A claim that waits for its first
 * consumer gets only a reserved volume.
 */
export function findVolume(
  claim: StoredClaim,
  { candidates, waitsForConsumer, node }: VolumeChoice,
): StoredVolume | undefined {
  let best: StoredVolume | undefined;
  for (const volume of candidates) {
    if (volume.metadata.deletionTimestamp !== undefined || !isLargeEnough(volume, claim)) continue;
    if (volumeModeOf(volume) !== volumeModeOf(claim)) continue;
    if (isReservedFor(volume, claim)) return volume;
    if (volume.spec.claimRef !== undefined || (waitsForConsumer && node === undefined)) continue;
    if (volume.status?.phase !== 'Available' || !matchesSelector(volume, claim)) continue;
    if (classNameOf(volume) !== classNameOf(claim) || !hasAccessModes(volume, claim)) continue;
    if (waitsForConsumer && !isReachableFrom(volume, node)) continue;
    if (best === undefined || isSmaller(volume, best)) best = volume;
  }
  return best;
}

/** Returns why the claim cannot use the volume that it names, with Kubernetes' wording, or undefined if it can. */
export function findMismatch(volume: StoredVolume, claim: StoredClaim): string | undefined {
  if (volume.metadata.deletionTimestamp !== undefined) {
    return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`;
  }
  if (!isLargeEnough(volume, claim)) return 'requested PV is too small';
  if (classNameOf(volume) !== classNameOf(claim)) return 'storageClassName does not match';
  if (volumeModeOf(volume) !== volumeModeOf(claim)) return 'incompatible volumeMode';
  return hasAccessModes(volume, claim) ? undefined : 'incompatible accessMode';
}

function volumeModeOf({ spec }: PersistentVolume | PersistentVolumeClaim): string {
  return spec.volumeMode ?? 'Filesystem';
}

function storageOf(amounts: Quantities | undefined): Quantity {
  return parseQuantity(String(amounts?.['storage'] ?? 0));
}

function isLargeEnough({ spec }: StoredVolume, claim: StoredClaim): boolean {
  return compareQuantities(storageOf(spec.capacity), storageOf(claim.spec.resources?.requests)) >= 0;
}

/** Volumes of equal size are ordered by name, so that the choice is deterministic. */
function isSmaller(a: StoredVolume, b: StoredVolume): boolean {
  const order = compareQuantities(storageOf(a.spec.capacity), storageOf(b.spec.capacity));
  return order < 0 || (order === 0 && a.metadata.name < b.metadata.name);
}

function hasAccessModes({ spec }: StoredVolume, claim: StoredClaim): boolean {
  return (claim.spec.accessModes ?? []).every((mode) => spec.accessModes.includes(mode));
}

function matchesSelector({ metadata }: StoredVolume, { spec }: StoredClaim): boolean {
  if (!isRecord(spec.selector)) return true;
  return matchesLabels(labelRequirementsOf(spec.selector), metadata.labels);
}

function isReachableFrom({ spec }: StoredVolume, node: EngineNode | undefined): boolean {
  const { nodeAffinity } = spec;
  if (!isRecord(nodeAffinity) || !isRecord(nodeAffinity['required'])) return true;
  return node !== undefined && compileNodeSelector(nodeAffinity['required'] as NodeSelector)(node);
}
