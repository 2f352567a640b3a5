/**
 * Why a VM cannot be changed, or not restarted, at this moment; each goes by itself or by somebody's hand, and the job
 * waits for it. Pure. What is done in each case:
 *
 *   being deleted       nothing more; the entry is done when the VM is gone
 *   restore             nothing until it is over: it may bring another type
 *   snapshot            patched at once; restarted after it
 *   migrating           patched at once; restarted after it
 *   paused              patched at once; restarted when somebody unpauses: what waits in memory is theirs
 *   starting, stopping  patched at once; restarted when it runs
 *   unschedulable       patched and restarted at once: no node may offer the old type
 *   crash-looping       patched at once; the next start takes the new type by itself
 */
import { HELD } from '#api/can.ts';
import { isMigrating } from '#api/migration-state.ts';
import { runningInstance } from '#api/machine-types/select-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

/** Why its spec cannot be changed now. */
export function patchObstacle(vm: Stored<VirtualMachine>): string | undefined {
  if (isDeleting(vm)) return 'the VM is being deleted';
  const { restoreInProgress } = vm.status ?? {};
  return restoreInProgress ? HELD.template(restoreInProgress) : undefined;
}

/** Why it cannot be restarted now; whatever keeps it from being changed does, too. */
export function obstacle(
  vm: Stored<VirtualMachine>,
  vmi: Stored<VirtualMachineInstance> | undefined,
): string | undefined {
  const { snapshotInProgress, printableStatus } = vm.status ?? {};
  const held = patchObstacle(vm) ?? (snapshotInProgress ? HELD.runStateBySnapshot(snapshotInProgress) : undefined);
  if (held !== undefined) return held;
  const running = runningInstance(vm, vmi);
  if (running === undefined) return undefined;
  const { phase, migrationState, conditions } = running.status ?? {};
  if (isDeleting(running)) return 'the VM is stopping';
  if (phase !== 'Running') {
    return printableStatus === 'ErrorUnschedulable'
      ? undefined
      : `the VM is starting: its instance is ${phase ?? 'Pending'}`;
  }
  if (isMigrating(migrationState)) return 'the VM is migrating';
  return isTrue(conditions, 'Paused') ? 'the VM is paused' : undefined;
}
