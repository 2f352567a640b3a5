/**
 * The disks of a simulated node: what is on each of them is a text. Those that all nodes reach are one storage for all
 * of them. They outlive agents, as files do.
 */
import { basename } from 'node:path';
import { INCOMING_NODE_ANNOTATION } from '#api/names.ts';
import { formatSnapshotHandle, parseSnapshotHandle, type SnapshotPlace } from '#api/snapshot-handle.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { volumeOfClaim } from '#node/volumes/claim.ts';
import type { DiskTexts } from '#node/hypervisor/fake/fake-host.ts';
import type { Preparation, PreparedVolume, VolumeLookups, Volumes } from '#node/volumes-port.ts';

/** As large as the claims of tests are. */
const SNAPSHOT_BYTES = 64 * 2 ** 20;
const DISKS = '/simulated/';
const SNAPSHOTS = '/simulated/snapshots/';

export class SimulatedStorage {
  /** What is on a disk, by the name of its PersistentVolume; '' when it is new. */
  readonly contents = new Map<string, string>();
  /** By handle. */
  readonly snapshots = new Map<string, { text: string; isSealed: boolean }>();
  /** Block volumes that are mounted for the state of a guest: the node that has mounted each, by name of the volume. */
  readonly mounts = new Map<string, { readonly node: string; readonly domain: string }>();
  /** Block volumes that a second node mounted before the first had let go: two ext4 drivers on one disk destroy it. */
  readonly doubleMounts: string[] = [];
}

type Volume = NonNullable<VirtualMachineInstance['spec']['volumes']>[number];

interface Coming {
  readonly moving: ReadonlySet<string>;
  readonly contents: ReadonlyMap<string, Buffer>;
}

export class SimulatedDisks implements DiskTexts {
  readonly own = new SimulatedStorage();
  readonly shared: SimulatedStorage;
  /** Names of the PersistentVolumes that were made for guests that come, and of copies that were cleared away. */
  readonly made: string[] = [];
  readonly cleared: string[] = [];
  readonly #node: string | undefined;

  /** `node`: then only volumes that are to come to it may be moved here, and they have paths of their own. */
  constructor(shared: SimulatedStorage, node?: string) {
    this.shared = shared;
    this.#node = node;
  }

  /** A disk as guests name it. */
  readDisk(path: string): string | undefined {
    return isDisk(path) ? this.read(basename(path)) : undefined;
  }

  writeDisk(path: string, text: string): void {
    if (isDisk(path)) this.write(basename(path), text);
  }

  read(volume: string): string | undefined {
    return this.own.contents.get(volume) ?? this.shared.contents.get(volume);
  }

  write(volume: string, text: string): void {
    const { contents } = this.shared.contents.has(volume) ? this.shared : this.own;
    contents.set(volume, text);
  }

  /** What a snapshot holds, by its handle, where this node reaches it. */
  snapshot(handle: string): Readonly<{ text: string; isSealed: boolean }> | undefined {
    return this.own.snapshots.get(handle) ?? this.shared.snapshots.get(handle);
  }

  /** Guests go on; what is on their disks at this moment is in the copies. */
  copied(copies: readonly { path: string; source: string }[]): void {
    for (const { path, source } of copies) {
      const place = parseSnapshotHandle(path.slice(SNAPSHOTS.length));
      if (place !== undefined) this.#snapshot(place, this.readDisk(source) ?? '');
    }
  }

  /** Claims must be bound, and volumes from snapshots filled, as on a real node. */
  volumes(): Volumes {
    return {
      prepare: ({ spec }, lookups, { names }) =>
        this.#prepare(
          (spec.volumes ?? []).filter(({ name }) => names?.includes(name) !== false),
          lookups,
        ),
      prepareIncoming: ({ spec }, lookups, { moving, contents }) =>
        this.#prepare(spec.volumes ?? [], lookups, { moving: new Set(moving.keys()), contents }),
      removeLeftover: async ({ metadata }) => {
        this.own.contents.delete(metadata.name);
        this.cleared.push(metadata.name);
      },
      prepareState: async (domain, claim, lookups) => {
        const found = await volumeOfClaim(claim, lookups);
        if (found.is !== 'bound') return found;
        if (found.volume.spec.volumeMode === 'Block') this.#mount(found.volume, domain);
        if (this.#make(found.volume)) {
          return { is: 'waiting', reason: 'VolumeCopyPending', message: 'it is not filled yet' };
        }
        return { is: 'ready', directory: `${DISKS}${found.volume.metadata.name}/state` };
      },
      releaseVolume: async () => {},
      release: async (domain) => this.#unmount((one) => one === domain),
      releaseUnwanted: async (isWanted) => this.#unmount((one) => !isWanted(one)),
      removeData: async (volume) => void this.#storageOf(volume).contents.delete(volume.metadata.name),
      grow: async () => 2 ** 30,
      makeSnapshotFile: async (place) => {
        this.#snapshot(place, '');
        return `${SNAPSHOTS}${formatSnapshotHandle(place)}`;
      },
      takeSnapshot: async (volume, place) => {
        if (this.#make(volume)) throw new Error('Cannot take a snapshot: the volume is not filled yet');
        this.#snapshot(place, this.read(volume.metadata.name) ?? '');
      },
      hasStateSnapshot: async (place) => this.#storageAt(place).snapshots.has(formatSnapshotHandle(place)),
      sealSnapshot: async (place) => {
        const snapshot = this.#storageAt(place).snapshots.get(formatSnapshotHandle(place));
        if (snapshot === undefined) throw new Error(`Cannot seal snapshot "${place.id}": there is none`);
        snapshot.isSealed = true;
        return SNAPSHOT_BYTES;
      },
      removeSnapshot: async (place) => void this.#storageAt(place).snapshots.delete(formatSnapshotHandle(place)),
      fill: async (volume) => this.#fill(volume),
    };
  }

  async #prepare(wanted: readonly Volume[], lookups: VolumeLookups, incoming?: Coming): Promise<Preparation> {
    const volumes = new Map<string, PreparedVolume>();
    for (const { name, persistentVolumeClaim } of wanted) {
      const moves = incoming?.moving.has(name) === true;
      let path = `${moves || incoming?.contents.has(name) === true ? this.#incomingDir() : DISKS}${name}`;
      if (persistentVolumeClaim !== undefined) {
        const found = await volumeOfClaim(persistentVolumeClaim.claimName, lookups);
        if (found.is !== 'bound') return found;
        if (moves) this.#makeAnew(found.volume);
        const pending = this.#make(found.volume);
        if (pending) return { is: 'waiting', reason: 'VolumeCopyPending', message: 'it is not filled yet' };
        path = `${moves ? this.#incomingDir() : DISKS}${found.volume.metadata.name}`;
      }
      volumes.set(name, { source: { path, format: 'raw' }, readonly: false });
    }
    return { is: 'ready', volumes };
  }

  #mount({ metadata: { name: volume = '' } }: PersistentVolume, domain: string): void {
    const { mounts, doubleMounts } = this.shared;
    const node = this.#node ?? '';
    const first = mounts.get(volume);
    if (first !== undefined && first.node !== node) doubleMounts.push(`${volume} on ${first.node} and ${node}`);
    mounts.set(volume, { node, domain });
  }

  #unmount(isReleased: (domain: string) => boolean): void {
    for (const [volume, { node, domain }] of this.shared.mounts) {
      if (node === (this.#node ?? '') && isReleased(domain)) this.shared.mounts.delete(volume);
    }
  }

  #incomingDir(): string {
    return `${DISKS}${this.#node ?? 'incoming'}/`;
  }

  /** Empty, whatever was there: its content comes. */
  #makeAnew({ metadata }: PersistentVolume): void {
    const { name = '', annotations } = metadata;
    const comesTo = annotations?.[INCOMING_NODE_ANNOTATION];
    if (this.#node !== undefined && comesTo !== this.#node) {
      throw new Error(`Cannot make volume "${name}" anew: it comes to node "${comesTo ?? ''}"`);
    }
    this.own.contents.set(name, '');
    this.made.push(name);
  }

  /** Whether it is still to be filled; where it is not, it is there now. */
  #make(volume: PersistentVolume): boolean {
    const { contents } = this.#storageOf(volume);
    const { name = '' } = volume.metadata;
    if (contents.has(name)) return false;
    if (handleOf(volume) !== undefined) return true;
    contents.set(name, '');
    return false;
  }

  #fill(volume: PersistentVolume): void {
    const { contents } = this.#storageOf(volume);
    const { name = '' } = volume.metadata;
    if (contents.has(name)) return;
    const handle = handleOf(volume) ?? '';
    const place = parseSnapshotHandle(handle);
    const snapshot = place && this.#storageAt(place).snapshots.get(handle);
    if (snapshot?.isSealed !== true) throw new Error(`Cannot use snapshot "${handle}": it is not complete`);
    contents.set(name, snapshot.text);
  }

  #snapshot(place: SnapshotPlace, text: string): void {
    this.#storageAt(place).snapshots.set(formatSnapshotHandle(place), { text, isSealed: false });
  }

  #storageAt({ scope }: SnapshotPlace): SimulatedStorage {
    return scope === 'shared' ? this.shared : this.own;
  }

  #storageOf({ spec }: PersistentVolume): SimulatedStorage {
    return spec.csi?.volumeAttributes?.['scope'] === 'shared' ? this.shared : this.own;
  }
}

function handleOf({ spec }: PersistentVolume): string | undefined {
  return spec.csi?.volumeAttributes?.['snapshot'];
}

function isDisk(path: string): boolean {
  return path.startsWith(DISKS) && !path.startsWith(SNAPSHOTS);
}
