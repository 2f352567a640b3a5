/**
 * Checks the clock and its timers. Timers that every PC has cannot be removed, and QEMU does not support every tick
 * policy.
 */
import type { GuestClock } from '#api/domain/clock.ts';
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
    errors.push(
      invalidValue(`${field}.timezone`, clock.timezone, 'must be the name of a time zone (e.g. Europe/Vienna)'),
    );
  }
  return [...errors, ...checkTimers(clock.timer ?? {}, `${field}.timer`)];
}

function checkTimers({ hpet, pit, rtc }: NonNullable<GuestClock['timer']>, path: string): FieldError[] {
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

/** Reports whether the name is in the time zone database. Offsets and paths are not. */
function isTimezone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
