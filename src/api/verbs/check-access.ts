/**
 * Decides when access to the display and the ports of a guest is refused. Part of the table in decide-verb.ts. Pure.
 */
import type { VerbWorld, RefusedDecision } from '#api/verbs/decide-verb.ts';
import type { InstanceRefusal } from '#api/verbs/check-instance.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';
import { controllerUid } from '#kube/meta.ts';

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
