/** Decides how a guest gets the devices in its instance's spec, and which state of them is reported. Pure. */
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DeviceNotes, HotplugDevice, HotplugState } from '#node/domains/hotplug/hotplug-devices.ts';
import { UNPLUG_REQUESTED, type HotplugNote } from '#node/guests/hotplug-notes.ts';

/** Returns the steps that are due. Cleanups come last, so that a failing one does not block the others. */
export function decideHotplug(
  devices: readonly HotplugDevice[],
  notes: DeviceNotes,
  elapsedMs: number,
): readonly DomainAction[] {
  const actions: DomainAction[] = [];
  const clearing: DomainAction[] = [];
  let nextMs = Number.POSITIVE_INFINITY;
  for (const device of devices) {
    const step = nextStep(device, notes);
    if (step === undefined) continue;
    const dueInMs = step.dueAtMs - elapsedMs;
    if (dueInMs > 0) nextMs = Math.min(nextMs, dueInMs);
    else (step.do === 'clear' ? clearing : actions).push({ do: step.do, device });
  }
  actions.push(...clearing);
  if (nextMs < Number.POSITIVE_INFINITY) actions.push({ do: 'recheck', afterMs: nextMs });
  return actions;
}

type DeviceStep = { readonly do: 'plug' | 'unplug' | 'clear' | 'verify' | 'setLink'; readonly dueAtMs: number };

function nextStep(device: HotplugDevice, notes: DeviceNotes): DeviceStep | undefined {
  const { last, claim } = notes.get(device.id) ?? {};
  switch (device.is) {
    case 'present':
      if (device.link !== undefined) return { do: 'setLink', dueAtMs: last?.is === 'waiting' ? last.dueAtMs : 0 };
      if (device.claim === undefined || device.claim === claim) return undefined;
      return { do: 'verify', dueAtMs: last?.is === 'waiting' ? last.dueAtMs : 0 };
    case 'missing':
      if (device.needsCleanup === true || wasTriedWithOtherClaim(device, last)) return { do: 'clear', dueAtMs: 0 };
      return { do: 'plug', dueAtMs: last === undefined || last.is === 'unplugging' ? 0 : last.dueAtMs };
    case 'surplus':
      // An unplug request cannot be cancelled; the device is plugged in again after the guest released it.
      if (device.isWantedAgain === true) return undefined;
      return { do: 'unplug', dueAtMs: last?.is === 'unplugging' ? last.dueAtMs : 0 };
    case 'gone':
      return { do: 'clear', dueAtMs: 0 };
  }
}

/** Reports whether a plug was tried with another claim, whose volume then must be released: another guest may need it. */
function wasTriedWithOtherClaim({ claim }: HotplugDevice, last: HotplugNote['last']): boolean {
  return last?.claim !== undefined && last.claim !== claim;
}

/**
 * Returns the states to report: always for disks of hotpluggable claims; for interfaces only if they were plugged in or have
 * to be unplugged.
 */
export function hotplugStates(
  devices: readonly HotplugDevice[],
  notes: DeviceNotes,
  isReported: (device: string) => boolean,
): readonly HotplugState[] {
  return devices.flatMap((device) => {
    if (device.is === 'present' && device.type === 'interface' && !isReported(device.id)) return [];
    return [{ device: device.id, ...stateOf(device, notes) }];
  });
}

function stateOf(device: HotplugDevice, notes: DeviceNotes): Omit<HotplugState, 'device'> {
  if (device.is === 'present') return { phase: 'Ready' };
  const { last } = notes.get(device.id) ?? {};
  if (device.is === 'surplus') {
    const { reason, message } =
      last?.is === 'unplugging' ? last : { reason: 'WaitingForGuest', message: UNPLUG_REQUESTED };
    return { phase: 'Unplugging', reason, message };
  }
  if (device.is === 'gone' || device.needsCleanup === true) return { phase: 'Unplugging' };
  if (last === undefined || last.is === 'unplugging') return { phase: 'Plugging' };
  const { reason, message } = last;
  return last.is === 'failed'
    ? { phase: 'Failed', reason: 'PlugFailed', message }
    : { phase: 'Plugging', reason, message };
}
