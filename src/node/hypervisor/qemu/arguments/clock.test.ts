import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClockDefinition } from '#node/hardware/domain-definition.ts';
import { clockArguments } from '#node/hypervisor/qemu/arguments/clock.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

const SUMMER = Date.UTC(2026, 6, 1, 23, 30, 15, 250);
const WINTER = Date.UTC(2026, 0, 1, 0, 0, 0);

const cases: Record<string, { clock?: ClockDefinition; nowMs?: number; kvm?: boolean; want: string }> = {
  'UTC by default': { want: '-rtc base=utc' },
  'an offset': { clock: { offsetSeconds: -90 }, want: '-rtc base=2026-07-01T23:28:45' },
  'a zone, in summer': { clock: { timezone: 'Europe/Vienna' }, want: '-rtc base=2026-07-02T01:30:15' },
  'a zone, in winter': { clock: { timezone: 'Europe/Vienna' }, nowMs: WINTER, want: '-rtc base=2026-01-01T01:00:00' },
  'a zone with a half-hour offset': { clock: { timezone: 'Asia/Kolkata' }, want: '-rtc base=2026-07-02T05:00:15' },
  'tracking and tick policy': {
    clock: { rtcTrack: 'guest', rtcTickPolicy: 'catchup' },
    want: '-rtc base=utc,clock=vm,driftfix=slew',
  },
  'lost ticks with KVM': {
    clock: { pitTickPolicy: 'delay' },
    kvm: true,
    want: '-rtc base=utc -global driver=kvm-pit,property=lost_tick_policy,value=delay',
  },
  'no policy for lost ticks of an emulated guest': { clock: { pitTickPolicy: 'delay' }, want: '-rtc base=utc' },
};
for (const [name, { clock, nowMs = SUMMER, kvm = false, want }] of Object.entries(cases)) {
  test(name, () => {
    const host = { nowMs: () => nowMs, accelerator: kvm ? 'kvm' : 'tcg' } as QemuHost;
    assert.equal(clockArguments(clock, host).join(' '), want);
  });
}
