/**
 * The port to the volumes of guests. `volumes/` implements it with files, overlays and loop devices of this machine; the
 * agent names the domain and looks up the objects that a volume refers to. Every call may be repeated after a kill -9 at
 * any point.
 */
import type { StorageSize } from '#api/storage/storage-size.ts';
import type { ResumePoint, DiskHeader, DiskRefusalReason } from '#api/storage/disk-stream.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import type { DiskSource } from '#node/hardware/domain-definition.ts';

/** Returns current objects in the namespace of the instance, or undefined if they do not exist. */
export interface VolumeLookups {
  claim(name: string): Promise<Stored<PersistentVolumeClaim> | undefined>;
  volume(name: string): Promise<Stored<PersistentVolume> | undefined>;
  secret(name: string): Promise<Stored<Secret> | undefined>;
  configMap(name: string): Promise<Stored<ConfigMap> | undefined>;
  /** Returns a ServiceAccount token that is bound to the pod of the instance, or undefined if there is no such account. */
  token?(serviceAccount: string): Promise<string | undefined>;
}

export interface PreparedVolume {
  readonly source: DiskSource;
  readonly readonly: boolean;
  readonly cacheNone?: boolean;
}

export interface MissingVolume {
  readonly name: string;
  readonly message: string;
}

/** `waiting` may become ready later; `failed` never becomes ready with this instance. */
export type Preparation =
  | {
      readonly is: 'ready';
      readonly volumes: ReadonlyMap<string, PreparedVolume>;
      /** Optional volumes that do not exist. */
      readonly missing?: readonly MissingVolume[];
    }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

/** Like Preparation, for the directory with the persistent state of a guest. */
export type StatePreparation =
  | { readonly is: 'ready'; readonly directory: string }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

/** The snapshot is not a complete copy and never will be. */
export class SnapshotUnusableError extends Error {
  override readonly name = 'SnapshotUnusableError';
}

/** The content cannot be read or replaced at the moment. Another try may succeed. */
export class DiskRefusedError extends Error {
  override readonly name = 'DiskRefusedError';
  /** Sent to the client, which acts on it. */
  readonly reason: DiskRefusalReason | undefined;

  constructor(message: string, reason?: DiskRefusalReason) {
    super(message);
    this.reason = reason;
  }
}

/** The content of a disk. Must always be closed. */
export interface DiskContent {
  readonly header: DiskHeader & { readonly virtualSize: number };
  /** Reads the content; may be called once. Throws if the disk was written meanwhile. */
  chunks(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** The replacement of a disk's content. Must always be closed. */
export interface DiskUpload {
  /**
   * Replaces the content of the volume. If it throws, the volume is unchanged. The chunks follow the first `from` bytes,
   * which are left from an earlier upload.
   */
  receive(header: DiskHeader, chunks: AsyncIterable<Buffer>, options: ReceiveOptions): Promise<void>;
  /**
   * Returns the progress of an interrupted earlier upload, with the hash of its bytes. Throws if the content does not fit the
   * volume, or if the volume has content that must not be replaced.
   */
  readProgress(header: DiskHeader): Promise<ResumePoint>;
  close(): Promise<void>;
}

interface ReceiveOptions {
  readonly signal?: AbortSignal;
  readonly from?: number;
}

/** Reads and replaces the content of claims. While the content is open, no guest of this node gets the volume. */
export interface DiskContents {
  /** Opens the content of a claim. Throws DiskRefusedError. */
  open(claim: string, lookups: VolumeLookups, options: DiskUse): Promise<DiskContent>;
  /** Starts to replace the content of a claim that waits for it (UPLOAD_ANNOTATION). Throws DiskRefusedError. */
  replace(claim: string, lookups: VolumeLookups, options: DiskUse): Promise<DiskUpload>;
}

interface DiskUse {
  /** Returns a sentence about the current user of the volume, or undefined if it is not in use. */
  readonly useOf: (volume: Stored<PersistentVolume>) => string | undefined;
}

/** A disk whose data arrives from another node. */
export interface IncomingDisk {
  /** Size for the guest. */
  readonly bytes: number;
  /** Bytes that will be written to this node, if known. */
  readonly usedBytes?: number;
  readonly overlay: boolean;
}

export interface IncomingVolumes {
  /** Disks whose data moves, by volume. */
  readonly moving: ReadonlyMap<string, IncomingDisk>;
  /** Complete contents of small disks, by volume. */
  readonly contents: ReadonlyMap<string, Buffer>;
}

export interface Volumes {
  /**
   * Prepares the volumes of the instance for its domain, whose id is the instance's uid: all of them, or only `names` while
   * it runs. Only volumes of optional disks may be missing. `hasEnded` reports whether another domain of this node has ended
   * and no longer uses its volumes; without it, all domains count as running.
   */
  prepare(
    vmi: Stored<VirtualMachineInstance>,
    lookups: VolumeLookups,
    options: { signal?: AbortSignal; hasEnded?: (domainId: string) => boolean; names?: readonly string[] },
  ): Promise<Preparation>;
  /**
   * Prepares the volume of the claim for the persistent state of the domain, before the domain is started. The domain has
   * the volume exclusively until it is released.
   */
  prepareState(
    domainId: string,
    claim: string,
    lookups: VolumeLookups,
    options: { signal?: AbortSignal; hasEnded?: (domainId: string) => boolean },
  ): Promise<StatePreparation>;
  /**
   * Like prepare, for a guest that arrives from another node. The disks in `moving` are created empty with the given size; if
   * their claims are on the source node, only if INCOMING_NODE_ANNOTATION names this node. The disks in `contents` are
   * created with that content. Fails if there is not enough space.
   */
  prepareIncoming(
    vmi: Stored<VirtualMachineInstance>,
    lookups: VolumeLookups,
    options: IncomingVolumes & { signal?: AbortSignal; hasEnded?: (domainId: string) => boolean },
  ): Promise<Preparation>;
  /**
   * Removes the copy of a volume on a node that its guest has left. Does nothing if there is none. Throws if this node holds
   * or may hold the data of the volume.
   */
  removeLeftover(volume: Stored<PersistentVolume>): Promise<void>;
  /** Releases one volume of a running guest after the guest released its disk. Does nothing if there is none. */
  releaseVolume(domainId: string, name: string): Promise<void>;
  /** Releases all volumes of a domain that no longer exists; claims keep their data. Does nothing if there are none. */
  release(domainId: string): Promise<void>;
  /**
   * Releases the volumes of all domains of this node that are not wanted, which interrupted starts may have left. Must not
   * run concurrently with other calls.
   */
  releaseUnwanted(isWanted: (domainId: string) => boolean): Promise<void>;
  /** Deletes the data of a volume of LOCAL_PROVISIONER. Does nothing if there is none. */
  removeData(volume: Stored<PersistentVolume>): Promise<void>;
  /** Grows the medium to the capacity of its PersistentVolume, never shrinks it. Returns its size in bytes. */
  grow(volume: Stored<PersistentVolume>): Promise<number>;
  /**
   * Creates an empty file that the hypervisor may write, for a copy of a volume that a guest has open. A repeated call
   * empties the file, so it must not be called during a copy.
   */
  makeSnapshotFile(place: SnapshotPlace): Promise<string>;
  /**
   * Copies the medium of a volume that no guest has open; with `state`, the persistent state on it, which the guest of that
   * domain may be using. Replaces what an earlier try left.
   */
  takeSnapshot(
    volume: Stored<PersistentVolume>,
    place: SnapshotPlace,
    options: { signal?: AbortSignal; state?: { readonly domainId?: string | undefined } },
  ): Promise<void>;
  /** Reports whether a snapshot of a persistent state exists, sealed or not. Absent if disks are simulated. */
  hasStateSnapshot?(place: SnapshotPlace): Promise<boolean>;
  /**
   * Records durably that the copy is complete. Returns the size of a volume that is filled from it, in bytes. Throws
   * SnapshotUnusableError if the copy is missing or incomplete; only other errors are worth another try.
   */
  sealSnapshot(place: SnapshotPlace): Promise<number>;
  /** Does nothing if there is none. */
  removeSnapshot(place: SnapshotPlace): Promise<void>;
  /**
   * Fills a volume from a sealed snapshot, whose handle is in csi.volumeAttributes.snapshot. Until it resolves, guests cannot
   * use the volume (prepare returns `waiting`). Does nothing if the volume is filled.
   */
  fill(volume: Stored<PersistentVolume>, options: { signal?: AbortSignal }): Promise<void>;
  /** Returns the largest volumes that this node can ever hold. Absent if disks are simulated. */
  storageSize?(): Promise<StorageSize>;
  /** Absent if disks are simulated. */
  readonly contents?: DiskContents;
}
