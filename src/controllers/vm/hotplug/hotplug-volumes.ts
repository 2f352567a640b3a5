/**
 * Decides which disks to plug into and unplug from a running instance, so that it matches the template. Only
 * hotpluggable volumes of claims are considered. A disk that moves to another claim is unplugged first and plugged in
 * again when the guest has released it. A disk in use is not unplugged to change, for example, its serial or cache:
 * that needs a restart. Volumes that were plugged into the instance for this run only are left alone. Pure.
 */
import { isHotpluggable, isPlugged } from '#api/devices/disk-bus.ts';
import { disk as diskSchema, type Disk } from '#api/domain/disk.ts';
import { vmiVolumeSchema as volumeSchema, type VmiVolume } from '#api/domain/volume.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { normalizeValue } from '#controllers/vm/hotplug/normalize-value.ts';
import { deepEqual } from '#kube/deep.ts';

/** A volume and its disk, which have the same name. */
interface AttachedVolume {
  readonly volume: VmiVolume;
  readonly disk: Disk;
}

interface VolumeHotplugInput {
  /** The spec that a start would build now. */
  readonly next: VmiSpec;
  /** The spec of the running instance. */
  readonly now: VmiSpec;
  /** Reports whether the volume was plugged in for this run only. */
  readonly isEphemeral: (name: string) => boolean;
  readonly hotplug: VmiStatus['hotplug'];
}

export interface VolumeSteps {
  /** In the order of the template. */
  readonly plug: readonly AttachedVolume[];
  readonly unplug: readonly VolumeUnplug[];
  /** Names of volumes that need no restart: they match the template now or will be changed to match it. */
  readonly liveUpdatable: ReadonlySet<string>;
}

interface VolumeUnplug {
  readonly name: string;
  /** True if the volume is plugged in again afterwards, as the template has it now. */
  readonly returns: boolean;
}

export function decideVolumeSteps(input: VolumeHotplugInput): VolumeSteps {
  const { next, now, isEphemeral, hotplug = [] } = input;
  const [wanted, present] = [attachedOf(next), attachedOf(now)];
  const inProgress = new Set(hotplug.map(({ device }) => device));
  const plug: AttachedVolume[] = [];
  const unplug: VolumeUnplug[] = [];
  const liveUpdatable = new Set<string>();
  for (const [name, has] of present) {
    const want = wanted.get(name);
    if (!canHotplug(has) || (want !== undefined && !canHotplug(want))) continue;
    const stays = want === undefined ? isEphemeral(name) : deepEqual(comparable(has), comparable(want));
    if (!stays && want !== undefined && isSameDisk(has, want)) continue;
    liveUpdatable.add(name);
    if (!stays) unplug.push({ name, returns: want !== undefined && isPlugged(want.disk) });
  }
  const claims = new ClaimHolders(present);
  for (const [name, want] of wanted) {
    if (present.has(name) || !canHotplug(want)) continue;
    const holder = isPlugged(want.disk) ? claims.otherHolder(want) : undefined;
    // The current holder keeps the claim for this run, so only a restart can give it to this disk.
    if (holder !== undefined && !wanted.has(holder) && !unplug.some(({ name: unplugged }) => unplugged === holder))
      continue;
    liveUpdatable.add(name);
    if (holder === undefined && isPlugged(want.disk) && !inProgress.has(`disk-${name}`)) plug.push(want);
  }
  return { plug, unplug, liveUpdatable };
}

/** Returns the volumes with a disk, by name, in the order of the disks. */
function attachedOf({ domain, volumes = [] }: VmiSpec): Map<string, AttachedVolume> {
  const contents = new Map(volumes.map((volume) => [volume.name, volume]));
  const attached = new Map<string, AttachedVolume>();
  for (const disk of domain.devices?.disks ?? []) {
    const volume = contents.get(disk.name);
    if (volume !== undefined) attached.set(disk.name, { volume, disk });
  }
  return attached;
}

function canHotplug({ volume, disk }: AttachedVolume): boolean {
  return isHotpluggable(disk, volume);
}

/** Reports whether the disk is plugged before and after, on the same claim. */
function isSameDisk(has: AttachedVolume, want: AttachedVolume): boolean {
  const [before, now] = [has, want].map(({ volume }) => volume.persistentVolumeClaim?.claimName);
  return before === now && isPlugged(has.disk) && isPlugged(want.disk);
}

/** Returns the content and the hardware of the disk, in a form that deepEqual can compare. */
function comparable({ volume, disk }: AttachedVolume): unknown {
  const { persistentVolumeClaim: claim } = volume;
  const content = { ...volume, persistentVolumeClaim: { ...claim, readOnly: claim?.readOnly === true } };
  return [normalizeValue(volumeSchema, content), normalizeValue(diskSchema, normalizeDisk(disk))];
}

/** Returns the disk with defaults filled in and without `optional`, which is not a property of the hardware. */
export function normalizeDisk(declared: Disk): Disk {
  const { optional: _, plugged, disk, lun, serial, ...rest } = declared;
  const common = { ...rest, ...(serial ? { serial } : {}), plugged: plugged !== false };
  if (lun !== undefined) return { ...common, lun: { bus: 'scsi', readonly: lun.readonly === true } };
  if (rest.cdrom !== undefined || rest.floppy !== undefined) return common;
  return { ...common, disk: { ...disk, bus: disk?.bus ?? 'virtio', readonly: disk?.readonly === true } };
}

/** The disks that use each claim. A claim that is writable can have one disk; another one waits until it is free. */
class ClaimHolders {
  readonly #holders = new Map<string, AttachedVolume[]>();

  constructor(present: ReadonlyMap<string, AttachedVolume>) {
    for (const attached of present.values()) {
      const { claimName } = attached.volume.persistentVolumeClaim ?? {};
      if (claimName !== undefined) this.#holders.set(claimName, [...(this.#holders.get(claimName) ?? []), attached]);
    }
  }

  /** Returns the name of a disk that must release the claim first. */
  otherHolder({ volume: { name, persistentVolumeClaim: claim } }: AttachedVolume): string | undefined {
    const others = (this.#holders.get(claim?.claimName ?? '') ?? []).filter(({ disk }) => disk.name !== name);
    const conflicting = others.find(
      ({ volume }) => claim?.readOnly !== true || volume.persistentVolumeClaim?.readOnly !== true,
    );
    return conflicting?.disk.name;
  }
}
