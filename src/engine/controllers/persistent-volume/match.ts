/** Which volume a claim gets. Pure. */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import { classNameOf } from '#engine/controllers/persistent-volume/storage-class.ts';
import { compileNodeSelector, type NodeSelector } from '#engine/controllers/scheduler/node-selector.ts';
import type { PersistentVolume, PersistentVolumeClaim, Quantities } from '#kube/core-kinds.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/label-selector.ts';
import { isRecord, type Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity, type Quantity } from '#kube/quantity.ts';

type StoredVolume = Stored<PersistentVolume>;
type StoredClaim = Stored<PersistentVolumeClaim>;

export interface VolumeChoice {
  /** Those that nobody claims, of the claim's class, and those that are reserved for it. */
  readonly candidates: readonly StoredVolume[];
  /** Whether the claim waits for its first consumer. */
  readonly waitsForConsumer: boolean;
  /** The consumer's node, once it is known. */
  readonly node?: EngineNode;
}

/** Whether the volume's reference means this claim: by name, and by uid where it has one. */
export function isReservedFor({ spec }: PersistentVolume, { metadata }: StoredClaim): boolean {
  const { claimRef } = spec;
  if (claimRef?.name !== metadata.name || claimRef.namespace !== metadata.namespace) return false;
  return !claimRef.uid || claimRef.uid === metadata.uid;
}

/** The one that is reserved for the claim, else the smallest that fits; claims that wait get only the former. */
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

/** Why a volume that the claim names cannot be its own, in Kubernetes' words. */
export function findMismatch(volume: StoredVolume, claim: StoredClaim): string | undefined {
  if (volume.metadata.deletionTimestamp !== undefined) {
    return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`;
  }
  if (!isLargeEnough(volume, claim)) return 'requested PV is too small';
  if (classNameOf(volume) !== classNameOf(claim)) return 'storageClassName does not match';
  if (volumeModeOf(volume) !== volumeModeOf(claim)) return 'incompatible volumeMode';
  return hasAccessModes(volume, claim) ? undefined : 'incompatible accessMode';
}

export function volumeModeOf({ spec }: PersistentVolume | PersistentVolumeClaim): string {
  return spec.volumeMode ?? 'Filesystem';
}

function storageOf(amounts: Quantities | undefined): Quantity {
  return parseQuantity(String(amounts?.['storage'] ?? 0));
}

function isLargeEnough({ spec }: StoredVolume, claim: StoredClaim): boolean {
  return compareQuantities(storageOf(spec.capacity), storageOf(claim.spec.resources?.requests)) >= 0;
}

/** Of equal ones the first by name, so that the choice is the same each time. */
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
