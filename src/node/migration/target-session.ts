/**
 * The target's part of one migration: checks that the guest is expected, prepares its volumes and domain, and resumes the
 * guest when the source has recorded `migrated`.
 *
 *   check ─► prepare ─► ready ─► (receive) ─► stored ─► committed, arrived
 *     └─────────┴──────────┴─────────┴─ aborted: the domain controller removes the guest
 *                                                └─ interrupted: the domain controller asks the source
 *
 * The session itself destroys nothing: after a failure, decide-incoming.ts decides by the hypervisor's record.
 */
import { createHash } from 'node:crypto';
import { MIGRATION_ABORTED_REASON } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';
import type { DomainNotes } from '#node/guests/domain-notes.ts';
import type { HotplugNotes } from '#node/guests/hotplug-notes.ts';
import type { DomainLocks } from '#node/guests/domain-locks.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { TransferredState } from '#node/hypervisor/migration.ts';
import { ChannelClosedError, type Channel } from '#node/migration/channel.ts';
import type {
  OutcomeRequest,
  BeginMessage,
  FromSource,
  FromTarget,
  OutcomeResponse,
  SentMessage,
} from '#node/migration/messages.ts';
import { prepareGuest, type PrepareParts } from '#node/migration/prepare-guest.ts';
import type { EventSink } from '#runtime/events.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface TargetParts extends PrepareParts {
  readonly hypervisor: Hypervisor;
  readonly locks: DomainLocks;
  readonly notes: DomainNotes;
  readonly hotplugNotes: HotplugNotes;
  readonly events: EventSink;
  readonly log: Log;
  /** Called when the domain has to be decided on again. */
  onChange(id: string): void;
}

export type SourceChannel = Channel<FromTarget | OutcomeResponse, FromSource | OutcomeRequest>;

/** The decision of the source; undefined if the session ended without knowing it. */
type SourceDecision = 'migrated' | 'aborted' | undefined;

export interface Downtime {
  /** Start of the pause, by Clock.elapsed. */
  readonly sinceMs: number;
  /** Set when the guest was resumed. */
  readonly downtimeMs?: number;
}

const STORE_TIMEOUT_MS = 60_000;

export class TargetSession {
  readonly uid: string;
  readonly #id: string;
  readonly #from: string;
  readonly #begin: BeginMessage;
  readonly #channel: SourceChannel;
  readonly #parts: TargetParts;
  readonly #controller = new AbortController();
  readonly #sent = Promise.withResolvers<SentMessage>();
  readonly #decided = Promise.withResolvers<SourceDecision>();
  #vmi: Stored<VirtualMachineInstance> | undefined;
  #pausedSinceMs: number | undefined;
  #downtimeMs: number | undefined;

  constructor(begin: BeginMessage, from: string, channel: SourceChannel, parts: TargetParts) {
    this.uid = begin.uid;
    this.#id = begin.instance.uid;
    this.#from = from;
    this.#begin = begin;
    this.#channel = channel;
    this.#parts = parts;
    this.#sent.promise.catch(() => {});
  }

  /** The pause of the guest; undefined until the source has sent its start. */
  get downtime(): Downtime | undefined {
    const [sinceMs, downtimeMs] = [this.#pausedSinceMs, this.#downtimeMs];
    return sinceMs === undefined ? undefined : { sinceMs, ...(downtimeMs !== undefined && { downtimeMs }) };
  }

  /** Aborts the migration. Does nothing after the guest is stored, because then only the source decides. */
  abort(why: string): void {
    this.#controller.abort(new Error(why));
    this.#sent.reject(new Error(why));
  }

  /** Runs the session to its end, and returns the decision of the source. Never rejects. */
  async run(): Promise<SourceDecision> {
    void this.#listen();
    try {
      await this.#prepare();
      await this.#store();
    } catch (error) {
      return this.#fail(error);
    }
    this.#channel.trySend({ type: 'stored' });
    const decision = await this.#decided.promise;
    if (decision === 'migrated') await this.#resume();
    return decision;
  }

  async #prepare(): Promise<void> {
    const { signal } = this.#controller;
    const { vmi, endpoint } = await prepareGuest(this.#begin, this.#from, this.#parts, {
      signal,
      onFound: (found) => (this.#vmi = found),
    });
    this.#vmi = vmi;
    await this.#channel.send({ type: 'ready', door: endpoint });
    this.#parts.onChange(this.#id);
  }

  async #store(): Promise<void> {
    const { hypervisor, locks, clock } = this.#parts;
    const sent = readSent(await this.#sent.promise);
    const stopTimer = clock.after(STORE_TIMEOUT_MS, () => this.abort('the guest did not arrive in time'));
    try {
      const { signal } = this.#controller;
      await locks.run(this.#id, () => hypervisor.store(this.#id, sent, { signal }));
    } finally {
      stopTimer();
    }
  }

  async #resume(): Promise<void> {
    const { hypervisor, locks, hotplugNotes, events, node, log } = this.#parts;
    try {
      await locks.run(this.#id, () => hypervisor.commit(this.#id));
    } catch (err) {
      // The domain controller repeats it, because it knows the decision.
      log.error({ err, domain: this.#id }, 'Cannot resume a migrated guest; it will be tried again');
      return;
    }
    this.#channel.trySend({ type: 'arrived', downtimeMs: this.#recordDowntime() });
    if (this.#vmi === undefined) return;
    hotplugNotes.recordClaims(this.#id, this.#vmi);
    const message = `The VirtualMachineInstance migrated to node ${node.name}.`;
    events.record(this.#vmi, { type: 'Normal', reason: 'Migrated', message });
  }

  #recordDowntime(): number {
    const nowMs = this.#parts.clock.elapsed();
    return (this.#downtimeMs = Math.round(nowMs - (this.#pausedSinceMs ?? nowMs)));
  }

  #recordSent(message: SentMessage): void {
    this.#pausedSinceMs ??= this.#parts.clock.elapsed() - message.standsStillMs;
    this.#sent.resolve(message);
  }

  /** Reads the messages of the source until it has decided or the connection is lost. */
  async #listen(): Promise<void> {
    try {
      for (;;) {
        const message = await this.#channel.next();
        if (message.type === 'sent') this.#recordSent(message);
        else if (message.type === 'migrated') return this.#decided.resolve('migrated');
        else {
          const isAborted = message.type === 'aborted';
          const why = isAborted ? message.message : `the source node sent an unexpected message "${message.type}"`;
          this.#decided.resolve(isAborted ? 'aborted' : undefined);
          return this.abort(why);
        }
      }
    } catch (error) {
      this.#decided.resolve(undefined);
      this.abort(error instanceof ChannelClosedError ? error.message : String(error));
    }
  }

  #fail(error: unknown): SourceDecision {
    const { hypervisor, notes } = this.#parts;
    const message = errorMessage(error);
    const { migration } = hypervisor.get(this.#id) ?? {};
    // The guest is stored in spite of the error, so only the source can decide.
    if (migration?.uid === this.uid && migration.role === 'target' && migration.step !== 'waiting') return undefined;
    this.#channel.trySend({ type: this.#vmi === undefined ? 'refused' : 'failed', message });
    // Without an instance there is no pod on this node to fail.
    if (this.#vmi !== undefined) notes.recordFailure(this.#id, MIGRATION_ABORTED_REASON, message);
    return undefined;
  }
}

function readSent({ nvram, sha256 }: SentMessage): TransferredState {
  if (nvram === undefined) return {};
  const bytes = Buffer.from(nvram, 'base64');
  if (createHash('sha256').update(bytes).digest('hex') !== sha256) {
    throw new Error('the EFI variables were damaged during the transfer');
  }
  return { nvram: bytes };
}
