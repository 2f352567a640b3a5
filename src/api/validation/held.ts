/** What may not change on a VM while a snapshot of it is taken, or while it is being restored. In KubeVirt's words. */
import { HELD, runStrategyOf } from '#api/can.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmSpec } from '#api/virtual-machine/schema.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

/** Accounts of ours that write what others may not. */
export type OwnWriter = 'vm-controller' | 'restore-controller';

export function checkHeld(
  { spec }: VirtualMachine,
  { spec: was, status }: VirtualMachine,
  writer: OwnWriter | undefined,
): FieldError[] {
  return [
    ...(status?.snapshotInProgress ? duringSnapshot(spec, was, status.snapshotInProgress) : []),
    // The restore is what changes it.
    ...(status?.restoreInProgress && writer !== 'restore-controller'
      ? duringRestore(spec, was, status.restoreInProgress, writer)
      : []),
  ];
}

function duringSnapshot(spec: VmSpec, was: VmSpec, name: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!sameStrategy(spec, was)) errors.push(forbiddenField('spec.runStrategy', HELD.runStateBySnapshot(name)));
  if (!deepEqual(disksOf(spec), disksOf(was))) errors.push(forbiddenField('spec.template.spec', HELD.disks(name)));
  return errors;
}

function duringRestore(spec: VmSpec, was: VmSpec, name: string, writer: OwnWriter | undefined): FieldError[] {
  const errors: FieldError[] = [];
  // Some restores wait until their target is stopped: it must be possible to stop it.
  if (!sameStrategy(spec, was) && runStrategyOf({ spec }) !== 'Halted') {
    errors.push(forbiddenField('spec.runStrategy', HELD.runStateByRestore(name)));
  }
  const compared = writer === 'vm-controller' ? withoutIdentity : templateOf;
  if (!deepEqual(compared(spec), compared(was))) errors.push(forbiddenField('spec.template', HELD.template(name)));
  return errors;
}

/** `running: true` and runStrategy Always are the same wish. */
const sameStrategy = (spec: VmSpec, was: VmSpec) => runStrategyOf({ spec }) === runStrategyOf({ spec: was });

function disksOf({ template }: VmSpec) {
  return [template?.spec?.domain?.devices?.disks ?? [], template?.spec?.volumes ?? []];
}

const templateOf = ({ template }: VmSpec): unknown => template;

/** Without what the VM controller fills in where it is missing: firmware uuid and serial, and the machine type. */
function withoutIdentity({ template }: VmSpec): unknown {
  const { spec, ...rest } = template ?? {};
  const { domain, ...ofInstance } = spec ?? {};
  const { firmware, machine, ...ofDomain } = domain ?? {};
  const { uuid: _uuid, serial: _serial, ...ofFirmware } = firmware ?? {};
  const { type: _type, ...ofMachine } = machine ?? {};
  return { rest, ofInstance, ofDomain, ofFirmware, ofMachine };
}
