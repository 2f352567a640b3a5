/** Refuses changes to a VM that a snapshot or restore holds, with KubeVirt's messages. */
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import { awaitsGuest } from '#api/virtual-machine/claim-deletion.ts';
import type { VmSpec } from '#api/virtual-machine/schema.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';
import { HOLD_MESSAGES } from '#api/verbs/verb.ts';

/** Our own controllers that may make changes which users may not. */
export type TrustedWriter = 'vm-controller' | 'restore-controller';

export function checkHold(
  { spec }: VirtualMachine,
  old: VirtualMachine,
  writer: TrustedWriter | undefined,
): FieldError[] {
  const { spec: oldSpec, status } = old;
  return [
    ...(status?.snapshotInProgress ? checkDuringSnapshot(spec, old, status.snapshotInProgress) : []),
    // The restore itself changes the VM.
    ...(status?.restoreInProgress && writer !== 'restore-controller'
      ? checkDuringRestore(spec, oldSpec, status.restoreInProgress, writer)
      : []),
  ];
}

function checkDuringSnapshot(spec: VmSpec, old: VirtualMachine, name: string): FieldError[] {
  const errors: FieldError[] = [];
  const oldSpec = old.spec;
  // The snapshot waits for a guest that perhaps can never start.
  const mayStop = awaitsGuest(old) && runStrategyOf({ spec }) === 'Halted';
  if (!hasSameStrategy(spec, oldSpec) && !mayStop)
    errors.push(forbiddenField('spec.runStrategy', HOLD_MESSAGES.runStateBySnapshot(name)));
  if (!deepEqual(disksOf(spec), disksOf(oldSpec)))
    errors.push(forbiddenField('spec.template.spec', HOLD_MESSAGES.disks(name)));
  return errors;
}

function checkDuringRestore(
  spec: VmSpec,
  oldSpec: VmSpec,
  name: string,
  writer: TrustedWriter | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  // Stopping must be possible: some restores wait until their target is stopped.
  if (!hasSameStrategy(spec, oldSpec) && runStrategyOf({ spec }) !== 'Halted') {
    errors.push(forbiddenField('spec.runStrategy', HOLD_MESSAGES.runStateByRestore(name)));
  }
  const compared = writer === 'vm-controller' ? withoutIdentity : templateOf;
  if (!deepEqual(compared(spec), compared(oldSpec)))
    errors.push(forbiddenField('spec.template', HOLD_MESSAGES.template(name)));
  return errors;
}

/** `running: true` equals runStrategy Always. */
const hasSameStrategy = (spec: VmSpec, oldSpec: VmSpec) => runStrategyOf({ spec }) === runStrategyOf({ spec: oldSpec });

function disksOf({ template }: VmSpec) {
  return [template?.spec?.domain?.devices?.disks ?? [], template?.spec?.volumes ?? []];
}

const templateOf = ({ template }: VmSpec): unknown => template;

/** Removes the fields that the VM controller fills in: firmware uuid and serial, and the machine type. */
function withoutIdentity({ template }: VmSpec): unknown {
  const { spec, ...rest } = template ?? {};
  const { domain, ...ofInstance } = spec ?? {};
  const { firmware, machine, ...ofDomain } = domain ?? {};
  const { uuid: _uuid, serial: _serial, ...ofFirmware } = firmware ?? {};
  const { type: _type, ...ofMachine } = machine ?? {};
  return { rest, ofInstance, ofDomain, ofFirmware, ofMachine };
}
