/**
 * Finds the reason why the launcher pod cannot be created: an active migration of an earlier guest of the same name, a
 * claim of a disk that is missing or that another guest uses, persistent state without usable storage, or an address that
 * another VM has. Pure.
 */
import { CLAIM_IN_USE } from '#api/storage/disk-use.ts';
import { STATE_CONFLICT } from '#api/storage/state-conflict.ts';
import { describeHeldClaim } from '#controllers/vmi/claim-holders.ts';
import { findMissingClaim, type LaunchRefusal } from '#controllers/vmi/missing-claims.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { objectKey } from '#client/object-key.ts';
import { neededClaimNames } from '#controllers/shared/launcher/needed-volumes.ts';

type View = Pick<VmiWorld, 'vmi' | 'claims' | 'heldClaims' | 'state' | 'isMigrationActive' | 'addresses'>;

export const FAILED_STATE_CREATE = 'FailedBackendStorageCreate';
const STATE_NOT_READY = 'BackendStorageNotReady';

/** Returns the first reason, or undefined if the pod, or first its state claim, can be created. */
export function findLaunchRefusal(view: View): LaunchRefusal | undefined {
  return checkActiveMigration(view) ?? findLastingRefusal(view) ?? checkStateBound(view);
}

/**
 * Refuses a launch during a migration: only afterwards is it known where the newest state is and whether it is in use.
 */
function checkActiveMigration({ isMigrationActive }: View): LaunchRefusal | undefined {
  return isMigrationActive ? { reason: 'ActiveMigration', message: 'active migration exists' } : undefined;
}

/** Returns a reason that does not pass by itself; it is also reported in an Event. */
export function findLastingRefusal(view: View): LaunchRefusal | undefined {
  return findMissingClaim(view) ?? checkHeldClaims(view) ?? checkState(view) ?? view.addresses?.problem;
}

function checkHeldClaims({ vmi, heldClaims }: View): LaunchRefusal | undefined {
  const needed = new Set(neededClaimNames(vmi.spec));
  const held = heldClaims.find(({ claimName }) => needed.has(claimName));
  if (held === undefined) return undefined;
  const message = `Cannot start VirtualMachineInstance "${vmi.metadata.name}": ${describeHeldClaim(held)}`;
  return { reason: CLAIM_IN_USE, message };
}

function checkState({ state }: View): LaunchRefusal | undefined {
  if (state?.kind === 'disputed') return { reason: STATE_CONFLICT, message: state.problem };
  if (state?.kind === 'impossible') return { reason: FAILED_STATE_CREATE, message: state.problem };
  if (state?.kind !== 'exists' || state.claim.status?.phase !== 'Lost') return undefined;
  return {
    reason: STATE_NOT_READY,
    message: `backend storage PVC lost: the volume of ${objectKey(state.claim)} is gone`,
  };
}

/** Waits for a claim that is bound immediately: its volume decides the node of the pod. */
function checkStateBound({ state }: View): LaunchRefusal | undefined {
  if (state?.kind !== 'exists' || state.waitsForConsumer || state.claim.status?.phase === 'Bound') return undefined;
  return { reason: STATE_NOT_READY, message: `PVC pending: ${objectKey(state.claim)} is not bound yet` };
}
