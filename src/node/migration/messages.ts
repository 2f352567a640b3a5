/**
 * The messages between the agents of two nodes about one migration: lines of JSON over a stream with mutual TLS. The source
 * sends the first message and decides about the outcome.
 *
 *   source                      target
 *   begin ────────────────────►          checks the instance, prepares volumes and a waiting guest
 *         ◄──────────────────── ready    (or refused)
 *   ... the hypervisors send memory and disks to each other ...
 *   sent ─────────────────────►          stores everything on disk
 *         ◄──────────────────── stored   (or failed); from now on the target acts only when it knows the outcome
 *   migrated ─────────────────►          sent after the source has recorded it on disk
 *         ◄──────────────────── arrived  the guest runs on the target
 *
 * Before `migrated` the source may send `aborted` at any time; before `stored` the target may send `failed`. If the
 * connection is lost before `migrated` is recorded, the migration is aborted. A target whose connection is lost after
 * `stored` asks for the outcome on a new stream.
 */
import type { MigrationEndpoint, MovingDisk } from '#node/hypervisor/migration.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';

export interface BeginMessage {
  readonly type: 'begin';
  /** Uid of the VirtualMachineInstanceMigration. */
  readonly uid: string;
  readonly instance: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** The definition at the source, with the paths of the source. */
  readonly definition: DomainDefinition;
  readonly startedAtMs: number;
  readonly paused: boolean;
  readonly disks: readonly MovingDisk[];
  /** Contents of small read-only disks (cloud-init) in base64, by device id. */
  readonly contents: Readonly<Record<string, string>>;
  /** Lets the target find out whether both agents see the same files. */
  readonly place: SourceDirectory | undefined;
}

/** Identifies a directory of the source unambiguously. */
export interface SourceDirectory {
  readonly bootId: string;
  readonly dir: string;
  /** `<device>:<inode>` */
  readonly identity: string;
}

export type FromSource =
  | BeginMessage
  | SentMessage
  | { readonly type: 'migrated' }
  | { readonly type: 'aborted'; readonly message: string }
  | KeepAlive;

export interface SentMessage {
  readonly type: 'sent';
  /** Time for which the guest has been paused so far. */
  readonly standsStillMs: number;
  /** The EFI variables in base64, with their SHA-256 in hex. */
  readonly nvram?: string;
  readonly sha256?: string;
}

export type FromTarget =
  | { readonly type: 'ready'; readonly door: MigrationEndpoint }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'stored' }
  | { readonly type: 'failed'; readonly message: string }
  /** `downtimeMs` is the total time for which the guest was paused. */
  | { readonly type: 'arrived'; readonly downtimeMs: number }
  | KeepAlive;

/** Sent periodically, so that silence means a lost connection. */
export interface KeepAlive {
  readonly type: 'still-there';
}

/** Sent by a target whose connection was lost, as the only message of a new stream. */
export interface OutcomeRequest {
  readonly type: 'outcome';
  readonly uid: string;
  readonly instanceUid: string;
}

/**
 * `undecided` means that the target has to ask again. The source also answers `aborted` if it does not know the migration:
 * it keeps a record of `migrated` until the guest has arrived.
 */
export interface OutcomeResponse {
  readonly type: 'outcome';
  readonly is: 'migrated' | 'aborted' | 'undecided';
}
