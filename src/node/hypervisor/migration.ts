/**
 * The migration of a guest from one hypervisor to another: the part of the port that hypervisor.ts extends. Every step
 * is on disk before it takes effect (DomainMigration), so that the next process knows after a kill -9 what was
 * promised.
 *
 *   source   running ──send──► sending ──switchOver, recordMigrated──► migrated ──leave──► left; ended: migrated
 *                                 └── abortMigration ──► aborted: the guest continues here. Never after `migrated`.
 *   target   (absent) ──receive──► waiting ──store──► stored ──commit──► committed, then arrived: the guest continues here
 *                                    └── destroy, remove: while `waiting`, or if the source did not migrate
 *
 * The record of the source decides: `migrated` gives the guest to the target for good. The guest never runs on both
 * sides.
 */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';

export type SourceStep = 'sending' | 'aborted' | 'migrated' | 'left';
export type TargetStep = 'waiting' | 'stored' | 'committed' | 'arrived';

export type DomainMigration = {
  /** The uid of the VirtualMachineInstanceMigration. */
  readonly uid: string;
  /** The node at the other end. */
  readonly peer: string;
} & ({ readonly role: 'source'; readonly step: SourceStep } | { readonly role: 'target'; readonly step: TargetStep });

/** A disk whose data is moved with the guest. */
export interface MovingDisk {
  readonly deviceId: string;
  /** The size that the guest sees; the disk at the target has the same size. */
  readonly bytes: number;
  /** The bytes that the source has allocated, and the target will need; undefined if unknown. */
  readonly usedBytes?: number;
  /** Moves only the layer above the base image, which both sides can read. */
  readonly overlay: boolean;
}

/**
 * Tells the source's hypervisor how to connect to the target's. Written by the one, read by the other; opaque JSON to
 * all others.
 */
export interface MigrationEndpoint {
  readonly memory: string;
  /** Present if disks are moved. */
  readonly disks?: string;
  /** A secret that only these two know; absent if file permissions protect the endpoint. */
  readonly secret?: string;
}

export interface IncomingMigration {
  readonly uid: string;
  readonly peer: string;
  /** The start time of the guest on its first node. */
  readonly startedAtMs: number;
  /** The user has paused the guest, so it arrives paused. */
  readonly paused: boolean;
  readonly disks: readonly MovingDisk[];
  /** `local`: the source's hypervisor can open our files. */
  readonly transport: { readonly type: 'local' } | { readonly type: 'network'; readonly host: string };
}

export interface OutgoingMigration {
  readonly uid: string;
  readonly peer: string;
  readonly endpoint: MigrationEndpoint;
  readonly disks: readonly MovingDisk[];
  /** 0 means unlimited. */
  readonly bytesPerSecond: number;
  readonly autoConverge: boolean;
}

export interface SendProgress {
  readonly processedBytes: number;
  readonly remainingBytes: number;
  readonly totalBytes: number;
  readonly bytesPerSecond: number;
  readonly memoryRounds: number;
}

/** State that the source can read only after everything else was sent. */
export interface TransferredState {
  /** The EFI variables, if they are persistent. */
  readonly nvram?: Buffer;
}

export interface SendOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: SendProgress) => void;
}

export interface MigrationPort {
  /** Returns the size of each disk as the guest sees it, by device id; disks without a medium are left out. */
  diskSizes(id: string): Promise<ReadonlyMap<string, number>>;
  /** Returns the working directory of the guest's process, for IncomingMigration; undefined if there is no process. */
  workingDir(id: string): string | undefined;

  /**
   * Source: sends the guest. Resolves when the guest is paused and only the last part is left to send. Rejects on
   * failure, or when the signal aborts; call abortMigration then. `sending` is on disk before anything is sent.
   */
  send(id: string, outgoing: OutgoingMigration, options: SendOptions): Promise<void>;
  /** Source, after send: sends the last part. Rejects on failure; call abortMigration then. */
  switchOver(id: string): Promise<TransferredState>;
  /**
   * Source, once the target has stored everything: records that the guest belongs to the target. On disk when it
   * resolves.
   */
  recordMigrated(id: string): Promise<void>;
  /** Source, after `migrated` and once the target has committed: ends the guest's process here. May be repeated. */
  leave(id: string): Promise<void>;
  /**
   * Source, before `migrated`: aborts the migration. The guest continues, or stays paused if the user has paused it.
   * Does nothing if nothing is being sent; also works after a restart of this process at any moment. Throws after
   * `migrated`.
   */
  abortMigration(id: string): Promise<void>;

  /**
   * Target: prepares a guest that waits for the incoming data, in state `incoming`. A failure leaves nothing behind.
   */
  receive(
    definition: DomainDefinition,
    incoming: IncomingMigration,
    options: { readonly networkNamespace?: string; readonly signal?: AbortSignal },
  ): Promise<MigrationEndpoint>;
  /** Target: waits until all data has arrived, and makes state, disks and the step `stored` durable. */
  store(id: string, sent: TransferredState, options: { readonly signal?: AbortSignal }): Promise<void>;
  /** Target, once the source has migrated: records `committed`, then lets the guest continue. May be repeated. */
  commit(id: string): Promise<void>;
}
