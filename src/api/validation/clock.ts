/** The clock and its timers: what a PC always has cannot be taken away, and QEMU does not know every policy. */
import type { Clock } from '#api/domain/clock.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';

export function checkClock({ domain }: VmiSpec, path: string): FieldError[] {
  const { clock } = domain;
  if (clock === undefined) return [];
  const field = `${path}.domain.clock`;
  const errors: FieldError[] = [];
  if (clock.utc !== undefined && clock.timezone !== undefined) {
    errors.push(forbiddenField(field, 'only one of utc, timezone may be set'));
  }
  if (clock.timezone !== undefined && !isTimezone(clock.timezone)) {
    errors.push(invalidValue(`${field}.timezone`, clock.timezone, 'must be the name of a time zone, as Europe/Vienna'));
  }
  return [...errors, ...checkTimers(clock.timer ?? {}, `${field}.timer`)];
}

function checkTimers({ hpet, pit, rtc }: NonNullable<Clock['timer']>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (rtc?.present === false) {
    errors.push(forbiddenField(`${path}.rtc.present`, 'may not be false: every PC has this clock'));
  }
  if (hpet?.tickPolicy !== undefined && hpet.tickPolicy !== 'delay') {
    errors.push(unsupportedValue(`${path}.hpet.tickPolicy`, hpet.tickPolicy, ['delay']));
  }
  if (pit?.tickPolicy === 'catchup') {
    errors.push(unsupportedValue(`${path}.pit.tickPolicy`, pit.tickPolicy, ['delay', 'discard']));
  }
  return errors;
}

/** As the data base of time zones has them; neither an offset nor a path. */
export function isTimezone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
