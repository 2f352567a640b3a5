/**
 * What an instance's status tells of its volumes; of those that come and go while the guest runs also how far they are,
 * in KubeVirt's words. The node agent tells that in `hotplug`, by device. Pure.
 */
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { claimNameOf } from '#api/claim-names.ts';
import type { Volume } from '#api/domain/volume.ts';
import { STATE_VOLUME } from '#api/persistent-state.ts';
import { isLate } from '#controllers/vmi/late-volumes.ts';
import { missingClaim } from '#controllers/vmi/missing-claims.ts';
import { hotpluggableVolumes } from '#controllers/vmi/needed-volumes.ts';
import type { ClaimView, VmiWorld } from '#controllers/vmi/vmi-world.ts';

type VolumeStatus = NonNullable<VmiStatus['volumeStatus']>[number];
type Hotplugged = NonNullable<VmiStatus['hotplug']>[number];
type View = Pick<VmiWorld, 'vmi' | 'pod' | 'claims' | 'state'>;

const DEVICE_PREFIX = 'disk-';

/** By name, as KubeVirt sorts them. */
export function volumeStatusOf(view: View): VolumeStatus[] {
  const { spec, status } = view.vmi;
  const movable = new Set(hotpluggableVolumes(spec));
  const devices = new Map((status?.hotplug ?? []).map((entry) => [entry.device, entry]));
  const list = (spec.volumes ?? []).map((volume): VolumeStatus => {
    const entry = devices.get(DEVICE_PREFIX + volume.name);
    const late = movable.has(volume) && isLate(view, volume);
    // One that came with the pod is told as all others are, until it goes.
    const moves = late || (movable.has(volume) && entry !== undefined && entry.phase !== 'Ready');
    return {
      name: volume.name,
      ...claimInfo(volume, view),
      ...(late ? { hotplugVolume: {} } : {}),
      ...(moves ? progress(volume, entry, view) : {}),
    };
  });
  return [...list, ...leaving(view), ...stateVolume(view)].sort((a, b) =>
    a.name < b.name ? -1 : a.name > b.name ? 1 : 0,
  );
}

function claimInfo(volume: Volume, { claims }: View): Pick<VolumeStatus, 'persistentVolumeClaimInfo'> {
  const claimName = claimNameOf(volume);
  const view = claimName === undefined ? undefined : claims.get(claimName);
  return view === undefined ? {} : infoOf(view);
}

function stateVolume({ state }: View): VolumeStatus[] {
  return state?.is === 'there' ? [{ name: STATE_VOLUME, ...infoOf(state) }] : [];
}

function infoOf({ claim: { metadata, spec, status } }: ClaimView): Pick<VolumeStatus, 'persistentVolumeClaimInfo'> {
  const requests = spec.resources?.requests;
  const info = {
    claimName: metadata.name,
    ...(spec.accessModes === undefined ? {} : { accessModes: spec.accessModes }),
    volumeMode: spec.volumeMode ?? 'Filesystem',
    ...(status?.capacity === undefined ? {} : { capacity: status.capacity }),
    ...(requests === undefined ? {} : { requests }),
  };
  return { persistentVolumeClaimInfo: info };
}

function progress(volume: Volume, entry: Hotplugged | undefined, { vmi, claims }: View): Partial<VolumeStatus> {
  const claimName = claimNameOf(volume) ?? '';
  switch (entry?.phase) {
    case 'Ready': {
      const message = `Successfully attach hotplugged volume ${volume.name} to VM`;
      return { phase: 'Ready', reason: 'VolumeReady', message };
    }
    case 'Unplugging':
      return detaching(entry);
    case 'Failed':
      return { phase: 'Pending', reason: 'PlugFailed', ...said(entry) };
    default: {
      const missing = missingClaim(`${vmi.metadata.namespace}/${claimName}`, claims.get(claimName));
      return { phase: 'Pending', ...(missing ?? { reason: 'VolumePending', ...said(entry) }) };
    }
  }
}

/** What the spec no longer has and the guest still does: its claim is the one that was told before. */
function leaving({ vmi: { spec, status } }: View): VolumeStatus[] {
  const named = new Set(spec.volumes?.map(({ name }) => name));
  const told = new Map((status?.volumeStatus ?? []).map((one) => [one.name, one.persistentVolumeClaimInfo]));
  return (status?.hotplug ?? []).flatMap((entry) => {
    const name = entry.device.slice(DEVICE_PREFIX.length);
    if (!entry.device.startsWith(DEVICE_PREFIX) || named.has(name)) return [];
    const info = told.get(name);
    return [
      {
        name,
        hotplugVolume: {},
        ...detaching(entry),
        ...(info === undefined ? {} : { persistentVolumeClaimInfo: info }),
      },
    ];
  });
}

function detaching(entry: Hotplugged): Partial<VolumeStatus> {
  // The agent may not have begun with it.
  const message = entry.phase === 'Ready' ? {} : said(entry);
  return { phase: 'Detaching', reason: entry.phase === 'Failed' ? 'UnplugFailed' : 'VolumeDetaching', ...message };
}

function said({ message }: Partial<Hotplugged> = {}): Pick<VolumeStatus, 'message'> {
  return message ? { message } : {};
}
