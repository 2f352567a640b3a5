/**
 * The target of a restore: known once and for all, held by the VM controller, and stopped. Pure.
 *
 *   there      ─► targetUID ─► held (status.restoreInProgress) ─► stopped, by targetReadinessPolicy ─► may be changed
 *   not there  ─► made in the end; whoever makes one of that name meanwhile keeps it, and the restore fails
 */
import { isFinal, runStrategyOf } from '#api/can.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { makesTarget, type RestoreWorld } from '#controllers/restore/restore-world.ts';
import { fails, goesOn } from '#controllers/restore/restore-status.ts';
import { findCondition } from '#kube/conditions.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

const GRACE_MS = 300_000;

/** The target is not, or no more, the one that this restore is about. */
export function refuseTarget(world: RestoreWorld): Plan | undefined {
  const { restore, vm } = world;
  const { name } = restore.spec.target;
  const { targetUID } = restore.status ?? {};
  if (targetUID === undefined) {
    if (!makesTarget(world) || vm === undefined) return undefined;
    return fails(world, 'TargetCreated', `VirtualMachine ${name} was created meanwhile`);
  }
  if (vm === undefined) return fails(world, 'TargetGone', `VirtualMachine ${name} is gone`);
  if (vm.metadata.uid !== targetUID) {
    return fails(world, 'TargetGone', `VirtualMachine ${name} was deleted and made anew`);
  }
  return isDeleting(vm) ? fails(world, 'TargetGone', `VirtualMachine ${name} is being deleted`) : undefined;
}

/** Which VM it is about, before anything is made. */
export function knowTarget(world: RestoreWorld): Plan | undefined {
  const { restore, vm, content } = world;
  const { name } = restore.spec.target;
  if (restore.status?.targetUID !== undefined || makesTarget(world) || vm === undefined) return undefined;
  if (isDeleting(vm)) {
    const message = `Waiting for VirtualMachine ${name}, which is being deleted, to be gone`;
    return goesOn(world, { reason: 'TargetDeleting', message });
  }
  if (content?.spec.source.virtualMachine.metadata.name !== name) {
    const message = 'restore source and restore target are different but restore target already exists';
    return fails(world, 'TargetExists', message);
  }
  const message = `Waiting for VirtualMachine ${name} to be held for this restore`;
  return goesOn(world, { reason: 'TargetNotHeld', message, learned: { targetUID: vm.metadata.uid } });
}

export function awaitHold(world: RestoreWorld): Plan | undefined {
  const { restore, vm } = world;
  if (vm === undefined || vm.status?.restoreInProgress === restore.metadata.name) return undefined;
  const message = `Waiting for VirtualMachine ${vm.metadata.name} to be held for this restore`;
  return goesOn(world, { reason: 'TargetNotHeld', message });
}

/** The VM is held: once no instance is there, none comes. */
export function awaitStop(world: RestoreWorld): Plan | undefined {
  const { restore, vm, vmi, now } = world;
  if (vm === undefined || vmi === undefined) return undefined;
  const { name } = vm.metadata;
  const reason = 'TargetNotReady';
  const waiting = 'Waiting for target to be stopped';
  const asking = `${waiting} (virtctl stop ${name})`;
  switch (restore.spec.targetReadinessPolicy ?? 'WaitGracePeriod') {
    case 'StopTarget': {
      const changes = runStrategyOf(vm) === 'Halted' ? [] : [halt(vm)];
      return goesOn(world, { reason, message: waiting, changes });
    }
    case 'FailImmediate':
      // A guest that has ended is stopped; the VM controller takes its instance away, but for Once.
      if (isFinal(vmi) && runStrategyOf(vm) !== 'Once') return goesOn(world, { reason, message: waiting });
      return fails(world, reason, `VirtualMachine ${name} is not stopped`);
    case 'WaitEventually':
      return goesOn(world, { reason, message: asking });
    case 'WaitGracePeriod': {
      const leftMs = askedAtMs(world) + GRACE_MS - now;
      if (leftMs <= 0) return fails(world, reason, `VirtualMachine ${name} was not stopped within 5m0s`);
      return goesOn(world, { reason, message: `${asking} within 5m0s`, requeueAfterMs: leftMs });
    }
  }
}

/** A restore may have been there before its snapshot was whole: nobody had to stop anything until then. */
function askedAtMs({ restore, snapshot }: RestoreWorld): number {
  const readySince = findCondition(snapshot?.status?.conditions, 'Ready')?.lastTransitionTime;
  const createdMs = Date.parse(restore.metadata.creationTimestamp);
  return readySince ? Math.max(createdMs, Date.parse(readySince)) : createdMs;
}

/** It stays so after the restore, as KubeVirt has it: whoever wants the guest back starts it. */
function halt(vm: Stored<VirtualMachine>): Change {
  const { name, namespace, uid, resourceVersion } = vm.metadata;
  const spec = vm.spec.runStrategy ? { runStrategy: 'Halted' } : { running: false };
  const patch = { type: 'merge', body: { metadata: { resourceVersion }, spec } } as const;
  const why = `Stopped VirtualMachine ${name} for the restore`;
  return { do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, why, reason: 'TargetStopped' };
}
