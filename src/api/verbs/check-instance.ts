/**
 * Decides when verbs that the node carries out on an instance are refused. Part of the table in decide-verb.ts. Pure.
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { findCondition, isTrue } from '#kube/conditions.ts';
import type { Refusal, VerbWorld, RefusedDecision } from '#api/verbs/verb.ts';
import { controllerUid } from '#kube/meta.ts';

/** Undefined if the verb is allowed. */
export type InstanceRefusal = Pick<Refusal, 'code' | 'message'> | undefined;

export function checkPause({ status, spec }: VirtualMachineInstance): InstanceRefusal {
  if (status?.phase !== 'Running') return { code: 409, message: 'VM is not running' };
  if (isPaused(status)) return { code: 409, message: 'VMI is already paused' };
  // The probe would fail during the pause and stop the guest. Agent pings are suspended while a guest is paused.
  if (spec.livenessProbe !== undefined && spec.livenessProbe.guestAgentPing === undefined) {
    return { code: 403, message: 'Pausing VMIs with LivenessProbe is currently not supported' };
  }
  return undefined;
}

/** Returns why verbs that need the guest agent are refused: freeze, unfreeze and the guest information. */
export function checkGuestAgent({ status }: VirtualMachineInstance): InstanceRefusal {
  if (status?.phase !== 'Running') return { code: 409, message: 'VMI is not running' };
  if (isPaused(status)) return { code: 409, message: 'VMI is paused' };
  if (isTrue(status.conditions, 'AgentConnected')) return undefined;
  return { code: 409, message: 'VMI does not have guest agent connected' };
}

export function checkUnpause({ status }: VirtualMachineInstance): InstanceRefusal {
  if (status?.phase !== 'Running') return { code: 409, message: 'VMI is not running' };
  if (!isPaused(status)) return { code: 409, message: 'VMI is not paused' };
  return undefined;
}

export function checkSoftReboot({ status, spec }: VirtualMachineInstance): InstanceRefusal {
  if (status?.phase !== 'Running') return { code: 409, message: 'VM is not running' };
  if (isPaused(status)) return { code: 409, message: 'VMI is paused' };
  const agent = findCondition(status.conditions, 'AgentConnected') !== undefined;
  if (!agent && spec.domain.features?.acpi?.enabled === false) {
    return { code: 409, message: 'VMI neither have the agent connected nor the ACPI feature enabled' };
  }
  return undefined;
}

export function checkReset({ status }: VirtualMachineInstance): InstanceRefusal {
  const phase = status?.phase;
  // The node decides for a guest that is about to run: it knows whether QEMU is up.
  if (phase === 'Running' || phase === 'Scheduled') return undefined;
  const cause = `Unable to connect to VirtualMachineInstance because phase is ${phase ?? ''} instead of Running or Scheduled`;
  return { code: 400, message: `Failed to reset non-running VMI with phase ${phase ?? ''}: ${cause}` };
}

export function checkConsole({ status, spec }: VirtualMachineInstance): InstanceRefusal {
  if (spec.domain.devices?.autoattachSerialConsole === false) {
    return { code: 400, message: 'No serial consoles are present.' };
  }
  if (status?.phase === 'Failed') return { code: 409, message: 'VMI is in failed status' };
  return status?.phase === 'Running' ? undefined : { code: 400, message: 'VMI is not running' };
}

/** Adds the refusal during a migration: a change of the guest on the source might be lost on the target. */
export function unlessMigrating(
  refuse: (vmi: VirtualMachineInstance) => InstanceRefusal,
): (vmi: VirtualMachineInstance) => InstanceRefusal {
  return (vmi) =>
    refuse(vmi) ?? (isMigrating(vmi.status?.migrationState) ? { code: 409, message: 'VMI is migrating' } : undefined);
}

function isPaused(status: VirtualMachineInstance['status']): boolean {
  return isTrue(status?.conditions, 'Paused');
}

/** Returns why VNC and screenshots are refused, or undefined if they are allowed. */
export function checkDisplay({ status, spec }: VirtualMachineInstance): InstanceRefusal {
  if (spec.domain.devices?.autoattachGraphicsDevice === false) {
    return { code: 400, message: 'No graphics devices are present.' };
  }
  return status?.phase === 'Running' ? undefined : { code: 400, message: 'VMI is not running' };
}

export function checkPortForward({ status }: VirtualMachineInstance): InstanceRefusal {
  if (isTrue(status?.conditions, 'Paused')) return { code: 409, message: 'VMI is paused' };
  return status?.phase === 'Running' ? undefined : { code: 400, message: 'VMI is not running' };
}

/** Returns why ports of the VM cannot be forwarded, or undefined if the VM has an instance. */
export function checkForwardTarget({ vm, vmi, name }: VerbWorld): RefusedDecision | undefined {
  const on = 'virtualmachine';
  if (vm === undefined) return { denied: { code: 404, message: 'not found', on, name } };
  if (vmi === undefined) return { denied: { code: 409, message: 'VMI is not started', on, name } };
  if (controllerUid(vmi) === vm.metadata.uid) return undefined;
  return {
    denied: { code: 500, message: `unable to retrieve vmi [${name}] for vm: it belongs to another owner`, on, name },
  };
}
