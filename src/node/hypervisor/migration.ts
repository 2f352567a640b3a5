/**
 * How a guest goes from one hypervisor to another: the part of the port that hypervisor.ts extends. Each step is on disk
 * before it counts (DomainMigration), so that whoever comes after a kill -9 knows what was promised.
 *
 *   source   running ──send──► sending ──switchOver, recordMigrated──► migrated ──leave──► left; ended: migrated
 *                                 └── takeBack ──► aborted: the guest goes on here. Never after `migrated`.
 *   target   (absent) ──receive──► waiting ──store──► stored ──commit──► committed, then arrived: the guest goes on here
 *                                    └── destroy, remove: only `waiting`, or by who knows that the source did not migrate
 *
 * The record of the source decides: `migrated` gives the guest to the target, for good. At no time do both run.
 */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';

export type SourceStep = 'sending' | 'aborted' | 'migrated' | 'left';
export type TargetStep = 'waiting' | 'stored' | 'committed' | 'arrived';

export type DomainMigration = {
  /** Of the VirtualMachineInstanceMigration. */
  readonly uid: string;
  /** The node at the other end. */
  readonly peer: string;
} & ({ readonly role: 'source'; readonly step: SourceStep } | { readonly role: 'target'; readonly step: TargetStep });

/** A disk whose data goes along. */
export interface MovingDisk {
  readonly deviceId: string;
  /** Of the disk as the guest sees it; that of the target is just as large. */
  readonly bytes: number;
  /** How much of them the source has stored: so many will be at the target. Undefined where nobody can tell. */
  readonly usedBytes?: number;
  /** Only what is above the base image, which both sides reach. */
  readonly overlay: boolean;
}

/** How the source's hypervisor reaches the target's. Made by one, read by the other; for everybody else it is JSON. */
export interface MigrationDoor {
  readonly memory: string;
  /** Where disks move. */
  readonly disks?: string;
  /** Known to these two alone; absent where file permissions do. */
  readonly secret?: string;
}

export interface Incoming {
  readonly uid: string;
  readonly peer: string;
  /** Of the guest, at its first node. */
  readonly startedAtMs: number;
  /** Its owner has paused it: it arrives so. */
  readonly paused: boolean;
  readonly disks: readonly MovingDisk[];
  /** `local`: the source's hypervisor sees our files, and has `fromDir` for its working directory. */
  readonly reach:
    | { readonly is: 'local'; readonly fromDir: string }
    | { readonly is: 'network'; readonly host: string };
}

export interface Outgoing {
  readonly uid: string;
  readonly peer: string;
  readonly door: MigrationDoor;
  readonly disks: readonly MovingDisk[];
  /** 0 is unlimited. */
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

/** What only the source has when all has been sent. */
export interface Sent {
  /** The EFI variables, where they outlive the guest. */
  readonly nvram?: Buffer;
}

export interface MigrationPort {
  /** How large each disk is for the guest, by id of the device; without those that have no medium. */
  diskSizes(id: string): Promise<ReadonlyMap<string, number>>;
  /** The working directory of the guest's process, for Incoming.reach; undefined where there is none. */
  workingDir(id: string): string | undefined;

  /** Source. Resolves when the guest stands still and all but the last of it was sent; rejects where it cannot be, or by
   *  the signal: takeBack then, whatever the reason. `sending` is on disk before anything is sent. */
  send(
    id: string,
    outgoing: Outgoing,
    options: { readonly signal: AbortSignal; readonly onProgress?: (progress: SendProgress) => void },
  ): Promise<void>;
  /** Source, after send: sends the last of it. Rejects where that fails: takeBack then. */
  switchOver(id: string): Promise<Sent>;
  /** Source, when the target has stored everything: from now on the guest is the target's. On disk when it resolves. */
  recordMigrated(id: string): Promise<void>;
  /** Source, after `migrated` and when the target has committed: the guest's process ends here. May be repeated. */
  leave(id: string): Promise<void>;
  /** Source, before `migrated`: gives it up; the guest goes on as before, or stays paused where its owner wants it so.
   *  Fine where nothing is being sent, also after a restart of ours in the middle of anything. Throws after `migrated`. */
  takeBack(id: string): Promise<void>;

  /** Target. Prepares a guest that waits for what comes: its state is `incoming`. A failure leaves nothing behind. */
  receive(
    definition: DomainDefinition,
    incoming: Incoming,
    options: { readonly signal?: AbortSignal },
  ): Promise<MigrationDoor>;
  /** Target. Waits until all has come, and brings it to disk: state, disks, and that it is so (`stored`). */
  store(id: string, sent: Sent, options: { readonly signal?: AbortSignal }): Promise<void>;
  /** Target, once the source has migrated: `committed` is on disk, then the guest goes on. May be repeated. */
  commit(id: string): Promise<void>;
}
