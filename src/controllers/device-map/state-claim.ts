/** Finds the claim with the persistent state of a VM that the running instance uses. Pure. */
import { needsState, STATE_VOLUME } from '#api/storage/persistent-state.ts';
import { type DeviceMapWorld, ownInstance } from '#controllers/device-map/device-map-world.ts';

/** Returns the claim to record, or undefined if the VM has no persistent state. */
export function stateClaimOf(world: DeviceMapWorld): string | undefined {
  const vmi = ownInstance(world);
  const known = world.identity.status?.stateClaim;
  if (vmi?.status?.phase !== 'Running' || vmi.status.volumeStatus === undefined) return known;
  if (!needsState(vmi.spec)) return undefined;
  const state = vmi.status.volumeStatus.find(({ name }) => name === STATE_VOLUME);
  return state?.persistentVolumeClaimInfo?.claimName ?? known;
}

/** Returns the claim to which a migration has handed over the state, if the record does not have it yet. */
export function handedOverClaim(world: DeviceMapWorld): string | undefined {
  const claim = stateClaimOf(world);
  if (claim === undefined || claim === world.identity.status?.stateClaim) return undefined;
  const { targetPersistentStatePVCName: target } = ownInstance(world)?.status?.migrationState ?? {};
  return claim === target ? claim : undefined;
}
