/** The clock of the machine: its start time, and how it advances. */
import type { ClockDefinition } from '#node/hardware/domain-definition.ts';
import { optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

export function clockArguments(clock: ClockDefinition | undefined, { nowMs, accelerator }: QemuHost): string[] {
  const { rtcTickPolicy, rtcTrack, pitTickPolicy } = clock ?? {};
  const options = {
    base: clockBase(clock ?? {}, nowMs),
    ...(rtcTrack !== undefined && { clock: rtcTrack === 'guest' ? 'vm' : 'host' }),
    ...(rtcTickPolicy !== undefined && { driftfix: rtcTickPolicy === 'catchup' ? 'slew' : 'none' }),
  };
  const pit = { driver: 'kvm-pit', property: 'lost_tick_policy', value: pitTickPolicy ?? '' };
  return [
    '-rtc',
    optionText('', options),
    // Only KVM's PIT has tick policies.
    ...(pitTickPolicy !== undefined && accelerator === 'kvm' ? ['-global', optionText('', pit)] : []),
  ];
}

/** Returns the machine options that disable timers. */
export function timerOptions(clock: ClockDefinition | undefined): { hpet?: boolean; pit?: boolean } {
  return { ...(clock?.hpet === false && { hpet: false }), ...(clock?.pit === false && { pit: false }) };
}

function clockBase({ offsetSeconds, timezone }: ClockDefinition, nowMs: () => number): string {
  if (timezone !== undefined) return dateText(nowMs() + zoneOffsetMs(timezone, nowMs()));
  return offsetSeconds === undefined ? 'utc' : dateText(nowMs() + offsetSeconds * 1000);
}

/** Formats a time as `2026-01-31T12:00:00`. */
function dateText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}

function zoneOffsetMs(timeZone: string, nowMs: number): number {
  const format = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, Number(value)]));
  const at = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
  const localMs = Date.UTC(at('year'), at('month') - 1, at('day'), at('hour'), at('minute'), at('second'));
  return localMs - Math.floor(nowMs / 1000) * 1000;
}
