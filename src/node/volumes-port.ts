/**
 * What the agent needs of the disks of its guests. `volumes/` makes files, overlays and loop devices of this machine; the
 * agent says for which domain, and looks up the objects that a volume names. Everything here may be repeated after a
 * kill -9 at any point.
 */
import type { Begun, DiskHeader } from '#api/disk-stream.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { SnapshotPlace } from '#api/snapshot-handle.ts';
import type { DiskSource } from '#node/definition/domain-definition.ts';

/** Objects as they are now; undefined where there is none. Names in the namespace of the instance. */
export interface VolumeLookups {
  claim(name: string): Promise<Stored<PersistentVolumeClaim> | undefined>;
  volume(name: string): Promise<Stored<PersistentVolume> | undefined>;
  secret(name: string): Promise<Stored<Secret> | undefined>;
  configMap(name: string): Promise<Stored<ConfigMap> | undefined>;
  /** A token of a ServiceAccount, for the pod of the instance; undefined where there is no such account. */
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

/** `waiting` is worth another look later; `failed` never becomes ready with this instance. */
export type Preparation =
  | {
      readonly is: 'ready';
      readonly volumes: ReadonlyMap<string, PreparedVolume>;
      /** Those that are not there and that the guest can do without. */
      readonly missing?: readonly MissingVolume[];
    }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

/** As Preparation, of the directory in which the devices of a guest keep what outlives it. */
export type StatePreparation =
  | { readonly is: 'ready'; readonly directory: string }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

/** What is there is no complete copy, and never will be. */
export class SnapshotUnusable extends Error {
  override readonly name = 'SnapshotUnusable';
}

/** The content may not be read or replaced now; trying again may help. */
export class DiskRefused extends Error {
  override readonly name = 'DiskRefused';
}

/** To be closed, whatever comes. */
export interface DiskContent {
  readonly header: DiskHeader & { readonly virtualSize: number };
  /** Once; throws where somebody wrote to the disk meanwhile. */
  chunks(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** To be closed, whatever comes. */
export interface DiskUpload {
  /**
   * The volume has the content when it resolves; where it throws, it is as before. The chunks are what follows the first
   * `from` bytes, which an earlier try has left.
   */
  receive(header: DiskHeader, chunks: AsyncIterable<Buffer>, options: ReceiveOptions): Promise<void>;
  /**
   * How far an earlier try came whose connection broke, with the hash of what is there. Throws where the volume cannot
   * have this content, or has one that may not go.
   */
  begun(header: DiskHeader): Promise<Begun>;
  close(): Promise<void>;
}

export interface ReceiveOptions {
  readonly signal?: AbortSignal;
  readonly from?: number;
}

/** The volumes of claims, read and replaced as a whole. As long as one is open, no guest of this node is given it. */
export interface DiskContents {
  /** Throws DiskRefused. `useOf` tells who uses the volume, in a sentence. */
  open(claim: string, lookups: VolumeLookups, options: DiskUse): Promise<DiskContent>;
  /** Only for claims that wait for their content (UPLOAD_ANNOTATION). Throws DiskRefused. */
  replace(claim: string, lookups: VolumeLookups, options: DiskUse): Promise<DiskUpload>;
}

export interface DiskUse {
  readonly useOf: (volume: Stored<PersistentVolume>) => string | undefined;
}

/** How large it is for the guest, and what of it will be written here, as far as that is known. */
export interface MovingVolume {
  readonly bytes: number;
  readonly usedBytes?: number;
  readonly overlay: boolean;
}

export interface IncomingVolumes {
  /** By name of the volume. */
  readonly moving: ReadonlyMap<string, MovingVolume>;
  readonly contents: ReadonlyMap<string, Buffer>;
}

export interface Volumes {
  /**
   * Makes the volumes of the instance ready for its domain, whose id is the instance's uid: all of them, or those of these
   * `names` while it runs. Of all of them, those of optional disks only may be missing. `hasEnded` tells of other domains
   * of this node whether they still use what they were given; unless told, they do.
   */
  prepare(
    vmi: Stored<VirtualMachineInstance>,
    lookups: VolumeLookups,
    options: { signal?: AbortSignal; hasEnded?: (domainId: string) => boolean; names?: readonly string[] },
  ): Promise<Preparation>;
  /**
   * Makes the volume of the claim ready to keep the state of the domain's devices; before the domain begins. It is the
   * domain's alone until it is released.
   */
  prepareState(
    domainId: string,
    claim: string,
    lookups: VolumeLookups,
    options: { signal?: AbortSignal; hasEnded?: (domainId: string) => boolean },
  ): Promise<StatePreparation>;
  /**
   * As prepare, for a guest that comes from another node. Disks that move (`moving`, by name of the volume) are made anew
   * and empty, as large as told: of claims that lie on the source only where INCOMING_NODE_ANNOTATION names this node.
   * `contents` are disks that are as they are there. Fails where there is no room for all of them.
   */
  prepareIncoming(
    vmi: Stored<VirtualMachineInstance>,
    lookups: VolumeLookups,
    options: IncomingVolumes & { signal?: AbortSignal; hasEnded?: (domainId: string) => boolean },
  ): Promise<Preparation>;
  /**
   * The copy of a volume that counts no more, because its guest has moved: fine where there is none. Throws for volumes
   * whose data this node holds or may hold.
   */
  removeLeftover(volume: Stored<PersistentVolume>): Promise<void>;
  /** The guest has let go of this volume, and goes on: what was made for it goes. Fine where there is nothing. */
  releaseVolume(domainId: string, name: string): Promise<void>;
  /** The domain is no more: what was made for it alone goes, claims keep their data. Fine where there is nothing. */
  release(domainId: string): Promise<void>;
  /**
   * The same for every domain of this node that is not wanted: of starts that were cut off and never taken up again.
   * Only while nothing else is asked for.
   */
  releaseUnwanted(isWanted: (domainId: string) => boolean): Promise<void>;
  /** Deletes the data of a volume of LOCAL_PROVISIONER. Fine where there is none. */
  removeData(volume: Stored<PersistentVolume>): Promise<void>;
  /** Makes the medium as large as the capacity of its PersistentVolume, never smaller; its size in bytes. */
  grow(volume: Stored<PersistentVolume>): Promise<number>;
  /**
   * A file for a copy of the volume, made by the hypervisor of a guest that has it open: empty, and the hypervisor's to
   * write. A repeated call empties it: only while no copy goes on.
   */
  makeSnapshotFile(place: SnapshotPlace): Promise<string>;
  /**
   * Copies the medium of a volume that no guest has open; or the state of a VM that it holds, which the guest of this
   * domain may have. What an earlier try left is made anew.
   */
  takeSnapshot(
    volume: Stored<PersistentVolume>,
    place: SnapshotPlace,
    options: { signal?: AbortSignal; state?: { readonly domainId?: string | undefined } },
  ): Promise<void>;
  /** Whether such a copy of a state is there, sealed or not. Absent where disks are only pretended. */
  hasStateSnapshot?(place: SnapshotPlace): Promise<boolean>;
  /**
   * The copy is complete and stays: it is on disk when this resolves. How large a volume from it is, in bytes. Throws
   * SnapshotUnusable where there is none, or it is no good; trying again helps only with other errors.
   */
  sealSnapshot(place: SnapshotPlace): Promise<number>;
  /** Fine where there is none. */
  removeSnapshot(place: SnapshotPlace): Promise<void>;
  /**
   * Fills a volume that is made from a sealed snapshot (csi.volumeAttributes.snapshot is its handle). Until it resolves,
   * the volume is not there for guests (prepare says `waiting`); fine where it is filled already.
   */
  fill(volume: Stored<PersistentVolume>, options: { signal?: AbortSignal }): Promise<void>;
  /** Absent where disks are only pretended. */
  readonly contents?: DiskContents;
}
