/** Restores the devices of a spec from rows of our own VMs. Other rows stay recorded devices. Pure. */
import type { Devices } from '#api/domain/devices.ts';
import { INPUT_BUSES, SOUND_MODELS, WATCHDOG_ACTIONS } from '#api/domain/hardware.ts';
import { VIDEO_TYPES } from '#api/domain/video.ts';
import { SOUND_ID, VIDEO_ID, WATCHDOG_ID } from '#api/devices/fixed-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';

type Hardware = Pick<
  Devices,
  'autoattachGraphicsDevice' | 'video' | 'sound' | 'watchdog' | 'inputs' | 'clientPassthrough'
>;

export function hardwareManifests(rows: readonly LearnedDevice[]): Hardware {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const [video, sound, watchdog] = [byId.get(VIDEO_ID), byId.get(SOUND_ID), byId.get(WATCHDOG_ID)];
  const inputs = rows.filter(({ id, type }) => type === 'input' && id.startsWith('input-'));
  const type = VIDEO_TYPES.find((known) => known === video?.device);
  const model = SOUND_MODELS.find((known) => known === sound?.device);
  const action = WATCHDOG_ACTIONS.find((known) => known === watchdog?.specParams?.['action']);
  return {
    ...(video !== undefined && { autoattachGraphicsDevice: true, ...(type && type !== 'vga' && { video: { type } }) }),
    ...(sound !== undefined && { sound: { name: nameOf(sound), ...(model && { model }) } }),
    ...(watchdog !== undefined && { watchdog: { name: nameOf(watchdog), i6300esb: { ...(action && { action }) } } }),
    ...(inputs.length > 0 && { inputs: inputs.map(toInput) }),
    ...(rows.some(({ id }) => /^redir-\d+$/.test(id)) && { clientPassthrough: {} }),
  };
}

function toInput(row: LearnedDevice): NonNullable<Devices['inputs']>[number] {
  const bus = INPUT_BUSES.find((known) => known === row.specParams?.['bus']);
  return { name: row.id.slice('input-'.length), type: 'tablet', ...(bus && { bus }) };
}

function nameOf({ id, name }: LearnedDevice): string {
  return name ?? id;
}
