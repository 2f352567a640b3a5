/** Which volume a claim gets. Pure. */
import type { Node } from '#engine/controllers/kinds.ts';
import { classNameOf } from '#engine/controllers/persistent-volume/storage-class.ts';
import { compileNodeSelector, type NodeSelector } from '#engine/controllers/scheduler/node-selector.ts';
import type { PersistentVolume, PersistentVolumeClaim, Quantities } from '#kube/core-kinds.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/label-selector.ts';
import { isRecord, type Stored } from '#kube/meta.ts';
import { compareQuantities, parseQuantity, type Quantity } from '#kube/quantity.ts';

type Volume = Stored<PersistentVolume>;
type Claim = Stored<PersistentVolumeClaim>;

export interface Choice {
  /** Those that nobody claims, of the claim's class, and those that are reserved for it. */
  readonly candidates: readonly Volume[];
  /** Whether the claim waits for its first consumer. */
  readonly waits: boolean;
  /** The consumer's node, once it is known. */
  readonly node?: Node;
}

/** Whether the volume's reference means this claim: by name, and by uid where it has one. */
export function isReservedFor({ spec }: PersistentVolume, { metadata }: Claim): boolean {
  const { claimRef } = spec;
  if (claimRef?.name !== metadata.name || claimRef.namespace !== metadata.namespace) return false;
  return !claimRef.uid || claimRef.uid === metadata.uid;
}

/** The one that is reserved for the claim, else the smallest that fits; claims that wait get only the former. */
export function findVolume(claim: Claim, { candidates, waits, node }: Choice): Volume | undefined {
  let best: Volume | undefined;
  for (const volume of candidates) {
    if (volume.metadata.deletionTimestamp !== undefined || !isLargeEnough(volume, claim)) continue;
    if (modeOf(volume) !== modeOf(claim)) continue;
    if (isReservedFor(volume, claim)) return volume;
    if (volume.spec.claimRef !== undefined || (waits && node === undefined)) continue;
    if (volume.status?.phase !== 'Available' || !isSelected(volume, claim)) continue;
    if (classNameOf(volume) !== classNameOf(claim) || !hasAccessModes(volume, claim)) continue;
    if (waits && !reaches(volume, node)) continue;
    if (best === undefined || isSmaller(volume, best)) best = volume;
  }
  return best;
}

/** Why a volume that the claim names cannot be its own, in Kubernetes' words. */
export function mismatch(volume: Volume, claim: Claim): string | undefined {
  if (volume.metadata.deletionTimestamp !== undefined) {
    return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`;
  }
  if (!isLargeEnough(volume, claim)) return 'requested PV is too small';
  if (classNameOf(volume) !== classNameOf(claim)) return 'storageClassName does not match';
  if (modeOf(volume) !== modeOf(claim)) return 'incompatible volumeMode';
  return hasAccessModes(volume, claim) ? undefined : 'incompatible accessMode';
}

export function modeOf({ spec }: PersistentVolume | PersistentVolumeClaim): string {
  return spec.volumeMode ?? 'Filesystem';
}

function storageOf(amounts: Quantities | undefined): Quantity {
  return parseQuantity(String(amounts?.['storage'] ?? 0));
}

function isLargeEnough({ spec }: Volume, claim: Claim): boolean {
  return compareQuantities(storageOf(spec.capacity), storageOf(claim.spec.resources?.requests)) >= 0;
}

/** Of equal ones the first by name, so that the choice is the same each time. */
function isSmaller(a: Volume, b: Volume): boolean {
  const order = compareQuantities(storageOf(a.spec.capacity), storageOf(b.spec.capacity));
  return order < 0 || (order === 0 && a.metadata.name < b.metadata.name);
}

function hasAccessModes({ spec }: Volume, claim: Claim): boolean {
  return (claim.spec.accessModes ?? []).every((mode) => spec.accessModes.includes(mode));
}

function isSelected({ metadata }: Volume, { spec }: Claim): boolean {
  if (!isRecord(spec.selector)) return true;
  return matchesLabels(labelRequirementsOf(spec.selector), metadata.labels);
}

function reaches({ spec }: Volume, node: Node | undefined): boolean {
  const { nodeAffinity } = spec;
  if (!isRecord(nodeAffinity) || !isRecord(nodeAffinity['required'])) return true;
  return node !== undefined && compileNodeSelector(nodeAffinity['required'] as NodeSelector)(node);
}
