/**
 * Decides why a VM cannot be patched or restarted now. Each reason is temporary, and the job waits. Pure. Actions:
 *
 *   being deleted       none; the entry is done when the VM is gone
 *   restore             none until it is finished: it may bring back another type
 *   snapshot            patched at once; restarted afterwards
 *   migrating           patched at once; restarted afterwards
 *   claim being deleted patched at once; not restarted: the data would be lost and the VM could not start again
 *   paused              patched at once; restarted after the user unpauses: a restart would lose the paused memory
 *   starting, stopping  patched at once; restarted when it runs
 *   unschedulable       patched and restarted at once: perhaps no node offers the old type
 *   crash-looping       patched at once; the next start uses the new type anyway
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import { runningInstance } from '#api/machine-types/select-vm.ts';
import { findClaimDeletion } from '#api/virtual-machine/claim-deletion.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { HOLD_MESSAGES } from '#api/verbs/verb.ts';

/** Returns why the spec cannot be patched now, or undefined if it can. */
export function findPatchRefusal(vm: Stored<VirtualMachine>): string | undefined {
  if (isDeleting(vm)) return 'the VM is being deleted';
  const { restoreInProgress } = vm.status ?? {};
  return restoreInProgress ? HOLD_MESSAGES.template(restoreInProgress) : undefined;
}

/**
 * Returns why the VM cannot be restarted now, or undefined if it can. A VM that cannot be patched cannot be restarted.
 */
export function findRestartRefusal(
  vm: Stored<VirtualMachine>,
  vmi: Stored<VirtualMachineInstance> | undefined,
): string | undefined {
  const { snapshotInProgress, printableStatus } = vm.status ?? {};
  const held =
    findPatchRefusal(vm) ?? (snapshotInProgress ? HOLD_MESSAGES.runStateBySnapshot(snapshotInProgress) : undefined);
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
  return isTrue(conditions, 'Paused') ? 'the VM is paused' : findClaimDeletion(vm);
}
