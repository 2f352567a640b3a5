/** Defines the clock of a guest. Undefined means UTC with all timers. */
import type { DomainSpec } from '#api/domain/domain.ts';
import type { ClockDefinition } from '#node/hardware/domain-definition.ts';

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
