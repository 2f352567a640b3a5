/** What is to be done so that a guest has the devices that its instance names, and what is told of it meanwhile. Pure. */
import type { HotplugPhase } from '#api/virtual-machine-instance/status.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DeviceNotes, HotplugDevice } from '#node/domains/hotplug-devices.ts';
import { ASKED, type HotplugNote } from '#node/domains/hotplug-notes.ts';

/** Plugging comes first: what fails to be cleared away keeps nobody from it. */
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
  if (nextMs < Number.POSITIVE_INFINITY) actions.push({ do: 'lookAgain', afterMs: nextMs });
  return actions;
}

type Step = { readonly do: 'plug' | 'unplug' | 'clear' | 'verify' | 'setLink'; readonly dueAtMs: number };

function nextStep(device: HotplugDevice, notes: DeviceNotes): Step | undefined {
  const { last, claim } = notes.get(device.id) ?? {};
  switch (device.is) {
    case 'there':
      if (device.link !== undefined) return { do: 'setLink', dueAtMs: last?.is === 'waiting' ? last.dueAtMs : 0 };
      if (device.claim === undefined || device.claim === claim) return undefined;
      return { do: 'verify', dueAtMs: last?.is === 'waiting' ? last.dueAtMs : 0 };
    case 'missing':
      if (device.isLeft === true || wasTriedWithAnother(device, last)) return { do: 'clear', dueAtMs: 0 };
      return { do: 'plug', dueAtMs: last === undefined || last.is === 'asked' ? 0 : last.dueAtMs };
    case 'surplus':
      // It cannot be taken back: when the guest has let go, it comes again.
      if (device.isAwaited === true) return undefined;
      return { do: 'unplug', dueAtMs: last?.is === 'asked' ? last.dueAtMs : 0 };
    case 'gone':
      return { do: 'clear', dueAtMs: 0 };
  }
}

/** It may hold what another guest waits for. */
function wasTriedWithAnother({ claim }: HotplugDevice, last: HotplugNote['last']): boolean {
  return last?.claim !== undefined && last.claim !== claim;
}

export interface HotplugState {
  readonly device: string;
  readonly phase: HotplugPhase;
  /** Why it is not Ready, where there is more to say than that it goes on. */
  readonly reason?: string;
  readonly message?: string;
}

/** Disks of hotpluggable claims are always told, interfaces since they came or began to go. */
export function hotplugStates(
  devices: readonly HotplugDevice[],
  notes: DeviceNotes,
  isTold: (device: string) => boolean,
): readonly HotplugState[] {
  return devices.flatMap((device) => {
    if (device.is === 'there' && device.type === 'interface' && !isTold(device.id)) return [];
    return [{ device: device.id, ...stateOf(device, notes) }];
  });
}

function stateOf(device: HotplugDevice, notes: DeviceNotes): Omit<HotplugState, 'device'> {
  if (device.is === 'there') return { phase: 'Ready' };
  const { last } = notes.get(device.id) ?? {};
  if (device.is === 'surplus') {
    const { reason, message } = last?.is === 'asked' ? last : { reason: 'WaitingForGuest', message: ASKED };
    return { phase: 'Unplugging', reason, message };
  }
  if (device.is === 'gone' || device.isLeft === true) return { phase: 'Unplugging' };
  if (last === undefined || last.is === 'asked') return { phase: 'Plugging' };
  const { reason, message } = last;
  return last.is === 'failed'
    ? { phase: 'Failed', reason: 'PlugFailed', message }
    : { phase: 'Plugging', reason, message };
}
