/**
 * Computes the status of the volumes of an instance, with the progress of hotplug; wording follows KubeVirt. The node
 * agent reports the progress in `hotplug`, by device. Pure.
 */
import { compareText } from '#lib/text/compare-text.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { CLAIM_IN_USE } from '#api/storage/disk-use.ts';
import { claimNameOf } from '#api/storage/claim-names.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { STATE_VOLUME } from '#api/storage/persistent-state.ts';
import { isHotplugged } from '#controllers/vmi/hotplugged-volumes.ts';
import { describeHeldClaim, type HeldClaim } from '#controllers/vmi/claim-holders.ts';
import { checkClaim } from '#controllers/vmi/missing-claims.ts';
import { hotpluggableVolumes } from '#controllers/shared/launcher/needed-volumes.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';

type VolumeStatus = NonNullable<VmiStatus['volumeStatus']>[number];
type HotplugEntry = NonNullable<VmiStatus['hotplug']>[number];
type View = Pick<VmiWorld, 'vmi' | 'pod' | 'claims' | 'heldClaims' | 'state'>;

const DEVICE_PREFIX = 'disk-';

/** Returns the volumes sorted by name, as in KubeVirt. */
export function volumeStatusOf(view: View): VolumeStatus[] {
  const { spec, status } = view.vmi;
  const hotpluggable = new Set(hotpluggableVolumes(spec));
  const devices = new Map((status?.hotplug ?? []).map((entry) => [entry.device, entry]));
  const list = (spec.volumes ?? []).map((volume): VolumeStatus => {
    const entry = devices.get(DEVICE_PREFIX + volume.name);
    const hotplugged = hotpluggable.has(volume) && isHotplugged(view, volume);
    // A volume that the pod names is reported like a fixed volume until it is unplugged.
    const hasProgress = hotplugged || (hotpluggable.has(volume) && entry !== undefined && entry.phase !== 'Ready');
    return {
      name: volume.name,
      ...claimInfo(volume, view),
      ...(hotplugged ? { hotplugVolume: {} } : {}),
      ...(hasProgress ? progress(volume, entry, view) : {}),
    };
  });
  return [...list, ...detachingVolumes(view), ...stateVolume(view)].sort((a, b) => compareText(a.name, b.name));
}

function claimInfo(volume: VmiVolume, { claims }: View): Pick<VolumeStatus, 'persistentVolumeClaimInfo'> {
  const claimName = claimNameOf(volume);
  const view = claimName === undefined ? undefined : claims.get(claimName);
  return view === undefined ? {} : infoOf(view);
}

function stateVolume({ state }: View): VolumeStatus[] {
  return state?.kind === 'exists' ? [{ name: STATE_VOLUME, ...infoOf(state) }] : [];
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

function progress(volume: VmiVolume, entry: HotplugEntry | undefined, view: View): Partial<VolumeStatus> {
  const { vmi, claims } = view;
  const claimName = claimNameOf(volume) ?? '';
  const held = view.heldClaims.find((one) => one.claimName === claimName);
  switch (entry?.phase) {
    case 'Ready': {
      const message = `Successfully attach hotplugged volume ${volume.name} to VM`;
      return { phase: 'Ready', reason: 'VolumeReady', message };
    }
    case 'Unplugging':
      return detachingProgress(entry);
    case 'Failed':
      if (held !== undefined) return heldProgress(volume, held);
      return { phase: 'Pending', reason: 'PlugFailed', ...messageOf(entry) };
    default: {
      const missing = checkClaim(`${vmi.metadata.namespace}/${claimName}`, claims.get(claimName));
      if (missing === undefined && held !== undefined) return heldProgress(volume, held);
      return { phase: 'Pending', ...(missing ?? { reason: 'VolumePending', ...messageOf(entry) }) };
    }
  }
}

function heldProgress({ name }: VmiVolume, held: HeldClaim): Partial<VolumeStatus> {
  const message = `Cannot plug in volume "${name}": ${describeHeldClaim(held)}`;
  return { phase: 'Pending', reason: CLAIM_IN_USE, message };
}

/**
 * Returns volumes that the spec no longer has and the guest has not released, with the claim that was reported before.
 */
function detachingVolumes({ vmi: { spec, status } }: View): VolumeStatus[] {
  const named = new Set(spec.volumes?.map(({ name }) => name));
  const reported = new Map((status?.volumeStatus ?? []).map((one) => [one.name, one.persistentVolumeClaimInfo]));
  return (status?.hotplug ?? []).flatMap((entry) => {
    const name = entry.device.slice(DEVICE_PREFIX.length);
    if (!entry.device.startsWith(DEVICE_PREFIX) || named.has(name)) return [];
    const info = reported.get(name);
    return [
      {
        name,
        hotplugVolume: {},
        ...detachingProgress(entry),
        ...(info === undefined ? {} : { persistentVolumeClaimInfo: info }),
      },
    ];
  });
}

function detachingProgress(entry: HotplugEntry): Partial<VolumeStatus> {
  // The node agent may not have begun to unplug it.
  const message = entry.phase === 'Ready' ? {} : messageOf(entry);
  return { phase: 'Detaching', reason: entry.phase === 'Failed' ? 'UnplugFailed' : 'VolumeDetaching', ...message };
}

function messageOf({ message }: Partial<HotplugEntry> = {}): Pick<VolumeStatus, 'message'> {
  return message ? { message } : {};
}
