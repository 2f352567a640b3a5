/**
 * The disks of a simulated node. The content of each disk is a text. Disks on shared storage are the same for all
 * nodes. Disks outlive agents, as files do.
 */
import { basename } from 'node:path';
import { INCOMING_NODE_ANNOTATION } from '#api/names.ts';
import { formatSnapshotHandle, parseSnapshotHandle, type SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { volumeOfClaim } from '#node/volumes/local/kinds/claim.ts';
import type { FakeDiskContents } from '#node/hypervisor/fake/fake-host.ts';
import type { Preparation, PreparedVolume, VolumeLookups, Volumes } from '#node/volumes/volumes-port.ts';

/** The size of the claims in tests. */
const SNAPSHOT_BYTES = 64 * 2 ** 20;
const DISKS = '/simulated/';
const SNAPSHOTS = '/simulated/snapshots/';

export class SimulatedStorage {
  /** The texts by name of the PersistentVolume; '' for a new disk. */
  readonly contents = new Map<string, string>();
  /** The snapshots by handle. */
  readonly snapshots = new Map<string, { text: string; isSealed: boolean }>();
  /** Block volumes that are mounted for the state of a guest, by name: the node that mounted each. */
  readonly mounts = new Map<string, { readonly node: string; readonly domain: string }>();
  /**
   * Block volumes that a second node mounted before the first had released them: two ext4 drivers on one disk destroy
   * it.
   */
  readonly doubleMounts: string[] = [];
}

type Volume = NonNullable<VirtualMachineInstance['spec']['volumes']>[number];

interface IncomingVolumes {
  readonly moving: ReadonlySet<string>;
  readonly contents: ReadonlyMap<string, Buffer>;
}

export class SimulatedDisks implements FakeDiskContents {
  readonly own = new SimulatedStorage();
  readonly shared: SimulatedStorage;
  /** Names of the PersistentVolumes that were created for incoming guests, and of leftovers that were removed. */
  readonly createdVolumes: string[] = [];
  readonly removedLeftovers: string[] = [];
  readonly #node: string | undefined;

  /** With `node`, only volumes that move to that node may be created here, and incoming disks have their own paths. */
  constructor(shared: SimulatedStorage, node?: string) {
    this.shared = shared;
    this.#node = node;
  }

  /** Returns the text of a disk by its path in the domain definition. */
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

  /** Returns a snapshot by its handle, if this node can reach it. */
  snapshot(handle: string): Readonly<{ text: string; isSealed: boolean }> | undefined {
    return this.own.snapshots.get(handle) ?? this.shared.snapshots.get(handle);
  }

  /** Copies the current texts of the disks, while their guests run on. */
  copyDisks(copies: readonly { path: string; source: string }[]): void {
    for (const { path, source } of copies) {
      const place = parseSnapshotHandle(path.slice(SNAPSHOTS.length));
      if (place !== undefined) this.#storeSnapshot(place, this.readDisk(source) ?? '');
    }
  }

  /** Returns the volumes of the node. As on a real node, claims must be bound and volumes from snapshots filled. */
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
        this.removedLeftovers.push(metadata.name);
      },
      prepareState: async (domain, claim, lookups) => {
        const found = await volumeOfClaim(claim, lookups);
        if (found.is !== 'bound') return found;
        if (found.volume.spec.volumeMode === 'Block') this.#mount(found.volume, domain);
        if (this.#createUnlessPending(found.volume)) {
          return { is: 'waiting', reason: 'VolumeCopyPending', message: 'it is not filled yet' };
        }
        return { is: 'ready', directory: `${DISKS}${found.volume.metadata.name}/state` };
      },
      releaseVolume: async () => {},
      release: async (domain) => this.#unmount((mounted) => mounted === domain),
      releaseUnwanted: async (isWanted) => this.#unmount((mounted) => !isWanted(mounted)),
      removeData: async (volume) => void this.#storageOf(volume).contents.delete(volume.metadata.name),
      grow: async () => 2 ** 30,
      makeSnapshotFile: async (place) => {
        this.#storeSnapshot(place, '');
        return `${SNAPSHOTS}${formatSnapshotHandle(place)}`;
      },
      takeSnapshot: async (volume, place) => {
        if (this.#createUnlessPending(volume)) throw new Error('Cannot take a snapshot: the volume is not filled yet');
        this.#storeSnapshot(place, this.read(volume.metadata.name) ?? '');
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

  async #prepare(wanted: readonly Volume[], lookups: VolumeLookups, incoming?: IncomingVolumes): Promise<Preparation> {
    const volumes = new Map<string, PreparedVolume>();
    for (const { name, persistentVolumeClaim } of wanted) {
      const isMoving = incoming?.moving.has(name) === true;
      let path = `${isMoving || incoming?.contents.has(name) === true ? this.#incomingDir() : DISKS}${name}`;
      if (persistentVolumeClaim !== undefined) {
        const found = await volumeOfClaim(persistentVolumeClaim.claimName, lookups);
        if (found.is !== 'bound') return found;
        if (isMoving) this.#createIncoming(found.volume);
        const pending = this.#createUnlessPending(found.volume);
        if (pending) return { is: 'waiting', reason: 'VolumeCopyPending', message: 'it is not filled yet' };
        path = `${isMoving ? this.#incomingDir() : DISKS}${found.volume.metadata.name}`;
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

  /** Creates an empty volume in place of any earlier one; the migration fills it. */
  #createIncoming({ metadata }: PersistentVolume): void {
    const { name = '', annotations } = metadata;
    const targetNode = annotations?.[INCOMING_NODE_ANNOTATION];
    if (this.#node !== undefined && targetNode !== this.#node) {
      throw new Error(`Cannot create volume "${name}": it moves to node "${targetNode ?? ''}"`);
    }
    this.own.contents.set(name, '');
    this.createdVolumes.push(name);
  }

  /** Creates the volume unless it is to be filled from a snapshot. Reports whether it is still to be filled. */
  #createUnlessPending(volume: PersistentVolume): boolean {
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

  #storeSnapshot(place: SnapshotPlace, text: string): void {
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
