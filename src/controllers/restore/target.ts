/**
 * The target of a restore: fixes which VM it is, and waits until the VM controller holds it and it is stopped. Pure.
 *
 *   exists   ─► targetUID ─► held (status.restoreInProgress) ─► stopped, by targetReadinessPolicy ─► may be changed
 *   missing  ─► created at the end; if a user creates a VM with that name meanwhile, the restore fails
 */
import { VIRTUAL_MACHINES, type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import { createsTarget, type RestoreWorld } from '#controllers/restore/restore-world.ts';
import { failRestore, continueRestore } from '#controllers/restore/restore-status.ts';
import { findCondition } from '#kube/conditions.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';

const GRACE_MS = 300_000;

/** Fails the restore if the target was deleted, replaced or created meanwhile. */
export function refuseTarget(world: RestoreWorld): Plan | undefined {
  const { restore, vm } = world;
  const { name } = restore.spec.target;
  const { targetUID } = restore.status ?? {};
  if (targetUID === undefined) {
    if (!createsTarget(world) || vm === undefined) return undefined;
    return failRestore(world, 'TargetCreated', `VirtualMachine ${name} was created meanwhile`);
  }
  if (vm === undefined) return failRestore(world, 'TargetGone', `VirtualMachine ${name} was deleted`);
  if (vm.metadata.uid !== targetUID) {
    return failRestore(world, 'TargetGone', `VirtualMachine ${name} was deleted and created again`);
  }
  return isDeleting(vm) ? failRestore(world, 'TargetGone', `VirtualMachine ${name} is being deleted`) : undefined;
}

/** Records which VM is the target, before anything is created. */
export function recordTarget(world: RestoreWorld): Plan | undefined {
  const { restore, vm, content } = world;
  const { name } = restore.spec.target;
  if (restore.status?.targetUID !== undefined || createsTarget(world) || vm === undefined) return undefined;
  if (isDeleting(vm)) {
    const message = `Waiting for the deletion of VirtualMachine ${name}`;
    return continueRestore(world, { reason: 'TargetDeleting', message });
  }
  if (content?.spec.source.virtualMachine.metadata.name !== name) {
    const message = 'restore source and restore target are different but restore target already exists';
    return failRestore(world, 'TargetExists', message);
  }
  const message = `Waiting for VirtualMachine ${name} to be held for this restore`;
  return continueRestore(world, { reason: 'TargetNotHeld', message, newStatus: { targetUID: vm.metadata.uid } });
}

export function awaitHold(world: RestoreWorld): Plan | undefined {
  const { restore, vm } = world;
  if (vm === undefined || vm.status?.restoreInProgress === restore.metadata.name) return undefined;
  const message = `Waiting for VirtualMachine ${vm.metadata.name} to be held for this restore`;
  return continueRestore(world, { reason: 'TargetNotHeld', message });
}

/** Waits for the instance to end. The VM is held, so that no other instance is started. */
export function awaitStop(world: RestoreWorld): Plan | undefined {
  const { restore, vm, vmi, now } = world;
  if (vm === undefined || vmi === undefined) return undefined;
  const { name } = vm.metadata;
  const reason = 'TargetNotReady';
  const waiting = 'Waiting for target to be stopped';
  const instruction = `${waiting} (virtctl stop ${name})`;
  switch (restore.spec.targetReadinessPolicy ?? 'WaitGracePeriod') {
    case 'StopTarget': {
      const changes = runStrategyOf(vm) === 'Halted' ? [] : [stopTarget(vm)];
      return continueRestore(world, { reason, message: waiting, changes });
    }
    case 'FailImmediate':
      // A guest that has ended is stopped. The VM controller deletes its instance, except with the strategy Once.
      if (isFinal(vmi) && runStrategyOf(vm) !== 'Once') return continueRestore(world, { reason, message: waiting });
      return failRestore(world, reason, `VirtualMachine ${name} is not stopped`);
    case 'WaitEventually':
      return continueRestore(world, { reason, message: instruction });
    case 'WaitGracePeriod': {
      const remainingMs = graceStartMs(world) + GRACE_MS - now;
      if (remainingMs <= 0) return failRestore(world, reason, `VirtualMachine ${name} was not stopped within 5m0s`);
      return continueRestore(world, { reason, message: `${instruction} within 5m0s`, requeueAfterMs: remainingMs });
    }
  }
}

/** Returns when the grace period began: when the restore was created or, if later, when its snapshot became ready. */
function graceStartMs({ restore, snapshot }: RestoreWorld): number {
  const readySince = findCondition(snapshot?.status?.conditions, 'Ready')?.lastTransitionTime;
  const createdMs = Date.parse(restore.metadata.creationTimestamp);
  return readySince ? Math.max(createdMs, Date.parse(readySince)) : createdMs;
}

/** Stops the VM. It stays stopped after the restore, as in KubeVirt. */
function stopTarget(vm: Stored<VirtualMachine>): Change {
  const { name, namespace, uid, resourceVersion } = vm.metadata;
  const spec = vm.spec.runStrategy ? { runStrategy: 'Halted' } : { running: false };
  const patch = { type: 'merge', body: { metadata: { resourceVersion }, spec } } as const;
  const why = `Stopped VirtualMachine ${name} for the restore`;
  return { do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, why, reason: 'TargetStopped' };
}
