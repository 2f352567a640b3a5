/**
 * What the agents of two nodes say to each other about one migration, as lines of JSON over a stream that TLS has
 * authenticated on both sides. The source speaks first, and decides.
 *
 *   source                      target
 *   begin ────────────────────►          looks the instance up, prepares volumes and a guest that waits
 *         ◄──────────────────── ready    (or refused)
 *   ... the hypervisors send memory and disks to each other ...
 *   sent ─────────────────────►          has all of it, on disk
 *         ◄──────────────────── stored   (or failed); from here on the target does nothing unless it knows the outcome
 *   migrated ─────────────────►          the source has written it down first
 *         ◄──────────────────── arrived  the guest goes on
 *
 * Before `migrated` the source may say `aborted` at any time, the target `failed` before `stored`. A stream that breaks
 * before `migrated` was written means aborted. A target that was cut off after `stored` asks: outcome.
 */
import type { MigrationDoor, MovingDisk } from '#node/hypervisor/migration.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';

export interface Begin {
  readonly type: 'begin';
  /** Of the VirtualMachineInstanceMigration. */
  readonly uid: string;
  readonly instance: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** As it is at the source, with the source's paths. */
  readonly definition: DomainDefinition;
  readonly startedAtMs: number;
  readonly paused: boolean;
  readonly disks: readonly MovingDisk[];
  /** Small disks that nobody can write (cloud-init): their content, base64, by id of the device. */
  readonly contents: Readonly<Record<string, string>>;
  /** To find out whether both see the same files. */
  readonly place: SourcePlace | undefined;
}

/** A directory of the source, told so that nothing else can be taken for it. */
export interface SourcePlace {
  readonly bootId: string;
  readonly dir: string;
  /** `<device>:<inode>` */
  readonly identity: string;
}

export type FromSource =
  | Begin
  | SentWord
  | { readonly type: 'migrated' }
  | { readonly type: 'aborted'; readonly message: string }
  | StillThere;

export interface SentWord {
  readonly type: 'sent';
  /** How long the guest has stood still by now. */
  readonly standsStillMs: number;
  /** In base64, with its SHA-256 in hex. */
  readonly nvram?: string;
  readonly sha256?: string;
}

export type FromTarget =
  | { readonly type: 'ready'; readonly door: MigrationDoor }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'stored' }
  | { readonly type: 'failed'; readonly message: string }
  /** `downtimeMs`: how long it stood still in all. */
  | { readonly type: 'arrived'; readonly downtimeMs: number }
  | StillThere;

/** Said now and then, so that silence means that nobody is there. */
export interface StillThere {
  readonly type: 'still-there';
}

/** What a target that was cut off asks the source, on a stream of its own; its only line. */
export interface AskOutcome {
  readonly type: 'outcome';
  readonly uid: string;
  readonly instanceUid: string;
}

/** `undecided`: ask again. `aborted` also where the source knows nothing of it: a record of `migrated` stays until the target has arrived. */
export interface Outcome {
  readonly type: 'outcome';
  readonly is: 'migrated' | 'aborted' | 'undecided';
}
