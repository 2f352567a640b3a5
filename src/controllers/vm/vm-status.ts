/** Computes the whole status of a VM from the world. Pure. */
import { restartMarkOf, type RestartMark } from '#api/machine-types/restart-mark.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { vmConditions } from '#controllers/vm/conditions.ts';
import type { VmFailure, VmWorld } from '#controllers/vm/vm-world.ts';
import { recordUidStatus } from '#controllers/vm/identity/lost-record.ts';
import { printableStatusOf } from '#controllers/vm/printable-status.ts';
import { protectedClaimsStatus } from '#controllers/vm/protected-claims.ts';
import { protectionStatus } from '#controllers/vm/protection.ts';
import { observedGeneration } from '#controllers/vm/hotplug/restart-required.ts';
import { stateClaimStatus } from '#controllers/vm/state-claim.ts';
import { startFailureOf } from '#controllers/vm/start/start-failure.ts';
import { pendingRequests } from '#controllers/vm/start/state-change-requests.ts';
import { findStartRefusal } from '#controllers/vm/start/start-refusal.ts';
import { isTrue } from '#kube/conditions.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';

export function vmStatusOf(world: VmWorld, vmFailure: VmFailure | undefined = findStartRefusal(world)): VmStatus {
  const { vm, vmi, lock } = world;
  const requests = pendingRequests(world);
  const startFailure = startFailureOf(world);
  const runStrategy = rememberedStrategy(world);
  return {
    created: vmi !== undefined,
    ready: isTrue(vmi?.status?.conditions, 'Ready'),
    printableStatus: printableStatusOf(world),
    conditions: vmConditions(world, vmFailure ?? lastStartFailure(startFailure)),
    ...(requests.length === 0 ? {} : { stateChangeRequests: [...requests] }),
    ...(startFailure === undefined ? {} : { startFailure }),
    observedGeneration: observedGeneration(world),
    desiredGeneration: vm.metadata.generation,
    ...(runStrategy === undefined ? {} : { runStrategy }),
    ...(lock?.kind === 'snapshot' ? { snapshotInProgress: lock.name } : {}),
    ...(lock?.kind === 'restore' ? { restoreInProgress: lock.name } : {}),
    ...recordUidStatus(world),
    ...stateClaimStatus(world),
    ...protectionStatus(world),
    ...protectedClaimsStatus(world),
    ...restartMark(world),
  };
}

/** Removes the mark when its instance is gone. The transition Job sets the mark, but may not exist any more by then. */
function restartMark({ vm, vmi, markedInstance }: VmWorld): RestartMark {
  return restartMarkOf(vm, markedInstance ?? vmi);
}

/** Returns why the last start failed. The failed instance is gone, so the VM reports this until a start succeeds. */
function lastStartFailure(failure: VmStatus['startFailure']): VmFailure | undefined {
  if (!failure?.message) return undefined;
  return { reason: failure.reason ?? 'StartFailed', message: `The last start failed: ${failure.message}` };
}

/**
 * Returns the strategy under which the VM last had an instance. Without an instance RerunOnFailure is not recorded: it
 * starts a VM that never had an instance under it, and a crash before that start must not prevent it.
 */
function rememberedStrategy({ vm, vmi }: VmWorld): string | undefined {
  const known = vm.status?.runStrategy;
  const strategy = runStrategyOf(vm);
  if (vmi !== undefined) return strategy;
  return known === undefined || strategy === 'RerunOnFailure' ? known : strategy;
}
