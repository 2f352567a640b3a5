/**
 * Which disks of a running instance come and go, so that it has what the template says: claim volumes that are
 * hotpluggable, with their disks. One on another claim leaves first, and comes back when the guest has let go of it; a
 * guest is not bereft of a disk that it uses for the sake of a serial or a cache: that waits for a restart. Volumes that
 * were plugged into the instance for this run only are nobody's business here. Pure.
 */
import { isMovable, isPlugged } from '#api/disk-bus.ts';
import { disk as diskSchema, type Disk } from '#api/domain/disk.ts';
import { volume as volumeSchema, type Volume } from '#api/domain/volume.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { meant } from '#controllers/vm/meaning.ts';
import { deepEqual } from '#kube/deep.ts';

/** A volume and its disk, which have one name. */
export interface Attached {
  readonly volume: Volume;
  readonly disk: Disk;
}

export interface VolumeView {
  /** What a start would make now. */
  readonly next: VmiSpec;
  /** The instance that runs. */
  readonly now: VmiSpec;
  /** Whether the volume was plugged in for this run only. */
  readonly isEphemeral: (name: string) => boolean;
  readonly hotplug: VmiStatus['hotplug'];
}

export interface VolumeSteps {
  /** In the order of the template. */
  readonly plug: readonly Attached[];
  readonly unplug: readonly Leaving[];
  /** Names of all whose difference goes away while the guest runs, now or later. */
  readonly live: ReadonlySet<string>;
}

export interface Leaving {
  readonly name: string;
  /** It comes back as the template has it now. */
  readonly returns: boolean;
}

export function volumeSteps(view: VolumeView): VolumeSteps {
  const { next, now, isEphemeral, hotplug = [] } = view;
  const [wanted, present] = [attachedOf(next), attachedOf(now)];
  const listed = new Set(hotplug.map(({ device }) => device));
  const plug: Attached[] = [];
  const unplug: Leaving[] = [];
  const live = new Set<string>();
  for (const [name, has] of present) {
    const want = wanted.get(name);
    if (!comesAndGoes(has) || (want !== undefined && !comesAndGoes(want))) continue;
    const stays = want === undefined ? isEphemeral(name) : deepEqual(meaning(has), meaning(want));
    if (!stays && want !== undefined && isSameDisk(has, want)) continue;
    live.add(name);
    if (!stays) unplug.push({ name, returns: want !== undefined && isPlugged(want.disk) });
  }
  const claims = new ClaimHolders(present);
  for (const [name, want] of wanted) {
    if (present.has(name) || !comesAndGoes(want)) continue;
    const holder = isPlugged(want.disk) ? claims.otherHolder(want) : undefined;
    // As long as this run lasts: only a restart brings the claim to where the template has it.
    if (holder !== undefined && !wanted.has(holder) && !unplug.some((going) => going.name === holder)) continue;
    live.add(name);
    if (holder === undefined && isPlugged(want.disk) && !listed.has(`disk-${name}`)) plug.push(want);
  }
  return { plug, unplug, live };
}

/** By name, in the order of the disks. */
function attachedOf({ domain, volumes = [] }: VmiSpec): Map<string, Attached> {
  const contents = new Map(volumes.map((volume) => [volume.name, volume]));
  const attached = new Map<string, Attached>();
  for (const disk of domain.devices?.disks ?? []) {
    const volume = contents.get(disk.name);
    if (volume !== undefined) attached.set(disk.name, { volume, disk });
  }
  return attached;
}

function comesAndGoes({ volume, disk }: Attached): boolean {
  return isMovable(disk, volume);
}

/** In the guest, and to stay there, however else it is to be. */
function isSameDisk(has: Attached, want: Attached): boolean {
  const [before, now] = [has, want].map(({ volume }) => volume.persistentVolumeClaim?.claimName);
  return before === now && isPlugged(has.disk) && isPlugged(want.disk);
}

/** The content and the hardware. */
function meaning({ volume, disk }: Attached): unknown {
  const { persistentVolumeClaim: claim } = volume;
  const content = { ...volume, persistentVolumeClaim: { ...claim, readOnly: claim?.readOnly === true } };
  return [meant(volumeSchema, content), meant(diskSchema, asHardware(disk))];
}

/** With all that is so unless set; without whether a start can do without it, which is not of the machine. */
export function asHardware(asked: Disk): Disk {
  const { optional: _, plugged, disk, lun, serial, ...rest } = asked;
  const common = { ...rest, ...(serial ? { serial } : {}), plugged: plugged !== false };
  if (lun !== undefined) return { ...common, lun: { bus: 'scsi', readonly: lun.readonly === true } };
  if (rest.cdrom !== undefined || rest.floppy !== undefined) return common;
  return { ...common, disk: { ...disk, bus: disk?.bus ?? 'virtio', readonly: disk?.readonly === true } };
}

/** A claim that is written has one disk: another one waits until it is free. */
class ClaimHolders {
  readonly #holders = new Map<string, Attached[]>();

  constructor(present: ReadonlyMap<string, Attached>) {
    for (const attached of present.values()) {
      const { claimName } = attached.volume.persistentVolumeClaim ?? {};
      if (claimName !== undefined) this.#holders.set(claimName, [...(this.#holders.get(claimName) ?? []), attached]);
    }
  }

  otherHolder({ volume: { name, persistentVolumeClaim: claim } }: Attached): string | undefined {
    const others = (this.#holders.get(claim?.claimName ?? '') ?? []).filter(({ disk }) => disk.name !== name);
    const inTheWay = others.find(
      ({ volume }) => claim?.readOnly !== true || volume.persistentVolumeClaim?.readOnly !== true,
    );
    return inTheWay?.disk.name;
  }
}
