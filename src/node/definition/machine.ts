/** Defines the machine of a guest: its type, by the hypervisor's canonical name, and its clock. */
import { chipsetOf } from '#api/devices/chipset.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { unsupportedValue, type FieldError } from '#kube/field-error.ts';
import type { Capabilities, MachineType } from '#node/hardware/capabilities.ts';
import type { ClockDefinition } from '#node/hardware/domain-definition.ts';

/** For an instance without a machine type that was not created by the VM controller. */
const DEFAULT_TYPE = 'q35';

/** Reports whether we support the machine type: its chipset must have a layout. The hypervisor has more types. */
export function isDefinable({ name }: MachineType): boolean {
  return chipsetOf(name) !== undefined;
}

export function defineMachine(
  domain: DomainSpec,
  { machines }: Capabilities,
  problems: FieldError[],
): MachineType | undefined {
  const requested = domain.machine?.type || DEFAULT_TYPE;
  const supported = machines.filter(isDefinable);
  const found = supported.find(({ name }) => name === requested) ?? supported.find(({ alias }) => alias === requested);
  if (found === undefined) {
    const names = supported.flatMap(({ name, alias }) => (alias === undefined ? [name] : [alias, name]));
    problems.push(unsupportedValue('spec.domain.machine.type', requested, names));
  }
  return found;
}

/** Returns undefined for UTC with all timers. */
export function defineClock({ clock }: DomainSpec): ClockDefinition | undefined {
  const { utc, timezone, timer } = clock ?? {};
  const { hpet, pit, rtc } = timer ?? {};
  const pitTickPolicy = pit?.tickPolicy === 'catchup' ? undefined : pit?.tickPolicy;
  const definition: ClockDefinition = {
    ...(utc?.offsetSeconds ? { offsetSeconds: utc.offsetSeconds } : {}),
    ...(timezone ? { timezone } : {}),
    ...(hpet?.present === false && { hpet: false }),
    ...(pit?.present === false && { pit: false }),
    ...(pitTickPolicy !== undefined && { pitTickPolicy }),
    ...(rtc?.tickPolicy !== undefined && { rtcTickPolicy: rtc.tickPolicy }),
    ...(rtc?.track !== undefined && { rtcTrack: rtc.track }),
  };
  return Object.keys(definition).length === 0 ? undefined : definition;
}
