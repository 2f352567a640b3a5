/** The machine type: what the spec says, resolved to the canonical name that the hypervisor knows. */
import { chipsetOf } from '#api/chipset.ts';
import type { Domain } from '#api/domain/domain.ts';
import { unsupportedValue, type FieldError } from '#kube/field-error.ts';
import type { Capabilities, MachineType } from '#node/hypervisor/hypervisor.ts';

/** For an instance that names none and that no VM controller has filled in. */
const DEFAULT_TYPE = 'q35';

/** Whether guests can be defined on it, because its chipset has a layout; the hypervisor has more. */
export function isDefinable({ name }: MachineType): boolean {
  return chipsetOf(name) !== undefined;
}

export function defineMachine(
  domain: Domain,
  { machines }: Capabilities,
  problems: FieldError[],
): MachineType | undefined {
  const wanted = domain.machine?.type || DEFAULT_TYPE;
  const offered = machines.filter(isDefinable);
  const found = offered.find(({ name }) => name === wanted) ?? offered.find(({ alias }) => alias === wanted);
  if (found === undefined) {
    const names = offered.flatMap(({ name, alias }) => (alias === undefined ? [name] : [alias, name]));
    problems.push(unsupportedValue('spec.domain.machine.type', wanted, names));
  }
  return found;
}
