/**
 * One guest on its way in. It looks up whether it is to come at all, prepares what it stands on, and lets it go on when
 * the source says that it has migrated.
 *
 *   look up ─► prepare ─► ready ─► (comes) ─► stored ─► committed, arrived
 *      └──────────┴──────────┴────────┴─ aborted: the domain loop clears away
 *                                               └─ cut off: the domain loop asks the source
 *
 * It destroys nothing itself: what it leaves behind is in the hypervisor's record, and decide-incoming.ts knows what to do.
 */
import { createHash } from 'node:crypto';
import { MIGRATION_ABORTED_REASON } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';
import type { DomainNotes } from '#node/domains/domain-notes.ts';
import { hotpluggableClaims } from '#node/domains/hotplug-devices.ts';
import type { HotplugNotes } from '#node/domains/hotplug-notes.ts';
import type { Turns } from '#node/domains/turns.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Sent } from '#node/hypervisor/migration.ts';
import { ChannelGone, type Channel } from '#node/migration/channel.ts';
import type { AskOutcome, Begin, FromSource, FromTarget, Outcome, SentWord } from '#node/migration/messages.ts';
import { prepareGuest, type PrepareParts } from '#node/migration/prepare-guest.ts';
import type { EventSink } from '#runtime/events.ts';

export interface TargetParts extends PrepareParts {
  readonly hypervisor: Hypervisor;
  readonly turns: Turns;
  readonly notes: DomainNotes;
  readonly hotplugNotes: HotplugNotes;
  readonly events: EventSink;
  readonly log: Log;
  /** Something is to be told, or decided. */
  onChange(id: string): void;
}

export type SourceChannel = Channel<FromTarget | Outcome, FromSource | AskOutcome>;

/** What the session knows at its end of what the source has decided. */
export type Verdict = 'migrated' | 'aborted' | undefined;

export interface Standstill {
  readonly sinceMs: number;
  /** When it has gone on. */
  readonly downtimeMs?: number;
}

const STORING_MS = 60_000;

export class TargetSession {
  readonly uid: string;
  readonly #id: string;
  readonly #from: string;
  readonly #begin: Begin;
  readonly #channel: SourceChannel;
  readonly #parts: TargetParts;
  readonly #ending = new AbortController();
  readonly #sent = Promise.withResolvers<SentWord>();
  readonly #decided = Promise.withResolvers<Verdict>();
  #vmi: Stored<VirtualMachineInstance> | undefined;
  #standsStillSinceMs: number | undefined;
  #downtimeMs: number | undefined;

  constructor(begin: Begin, from: string, channel: SourceChannel, parts: TargetParts) {
    this.uid = begin.uid;
    this.#id = begin.instance.uid;
    this.#from = from;
    this.#begin = begin;
    this.#channel = channel;
    this.#parts = parts;
    this.#sent.promise.catch(() => {});
  }

  /** Since when the guest stands still, by Clock.elapsed, and for how long it did; as far as that is known. */
  get standstill(): Standstill | undefined {
    const [sinceMs, downtimeMs] = [this.#standsStillSinceMs, this.#downtimeMs];
    return sinceMs === undefined ? undefined : { sinceMs, ...(downtimeMs !== undefined && { downtimeMs }) };
  }

  /** Before all has come; nothing happens later, for then only the source decides. */
  abort(why: string): void {
    this.#ending.abort(new Error(why));
    this.#sent.reject(new Error(why));
  }

  /** Never rejects. */
  async run(): Promise<Verdict> {
    void this.#listen();
    try {
      await this.#takeIn();
      await this.#store();
    } catch (error) {
      return this.#giveUp(error);
    }
    this.#channel.say({ type: 'stored' });
    const verdict = await this.#decided.promise;
    if (verdict === 'migrated') await this.#arrive();
    return verdict;
  }

  async #takeIn(): Promise<void> {
    const { signal } = this.#ending;
    const { vmi, door } = await prepareGuest(this.#begin, this.#from, this.#parts, {
      signal,
      onFound: (found) => (this.#vmi = found),
    });
    this.#vmi = vmi;
    await this.#channel.send({ type: 'ready', door });
    this.#parts.onChange(this.#id);
  }

  async #store(): Promise<void> {
    const { hypervisor, turns, clock } = this.#parts;
    const sent = readSent(await this.#sent.promise);
    const stopTimer = clock.after(STORING_MS, () => this.abort('the guest did not come in time'));
    try {
      const { signal } = this.#ending;
      await turns.take(this.#id, () => hypervisor.store(this.#id, sent, { signal }));
    } finally {
      stopTimer();
    }
  }

  async #arrive(): Promise<void> {
    const { hypervisor, turns, hotplugNotes, events, node, log } = this.#parts;
    try {
      await turns.take(this.#id, () => hypervisor.commit(this.#id));
    } catch (err) {
      // The loop does it again: it knows the verdict.
      log.error({ err, domain: this.#id }, 'Cannot let a guest go on that came from another node; trying again');
      return;
    }
    this.#channel.say({ type: 'arrived', downtimeMs: this.#wentOn() });
    if (this.#vmi === undefined) return;
    for (const [name, claim] of hotpluggableClaims(this.#vmi)) hotplugNotes.recordClaim(this.#id, `disk-${name}`, claim);
    const message = `The VirtualMachineInstance migrated to node ${node.name}.`;
    events.record(this.#vmi, { type: 'Normal', reason: 'Migrated', message });
  }

  #wentOn(): number {
    const nowMs = this.#parts.clock.elapsed();
    return (this.#downtimeMs = Math.round(nowMs - (this.#standsStillSinceMs ?? nowMs)));
  }

  #hasSent(word: SentWord): void {
    this.#standsStillSinceMs ??= this.#parts.clock.elapsed() - word.standsStillMs;
    this.#sent.resolve(word);
  }

  /** All that the source says, until it has decided or is gone. */
  async #listen(): Promise<void> {
    try {
      for (;;) {
        const word = await this.#channel.next();
        if (word.type === 'sent') this.#hasSent(word);
        else if (word.type === 'migrated') return this.#decided.resolve('migrated');
        else {
          const why = word.type === 'aborted' ? word.message : `the source said "${word.type}" out of turn`;
          this.#decided.resolve(word.type === 'aborted' ? 'aborted' : undefined);
          return this.abort(why);
        }
      }
    } catch (error) {
      this.#decided.resolve(undefined);
      this.abort(error instanceof ChannelGone ? error.message : String(error));
    }
  }

  #giveUp(error: unknown): Verdict {
    const { hypervisor, notes } = this.#parts;
    const message = error instanceof Error ? error.message : String(error);
    const { migration } = hypervisor.get(this.#id) ?? {};
    // It is on disk all the same: only the source can say what becomes of it.
    if (migration?.uid === this.uid && migration.role === 'target' && migration.step !== 'waiting') return undefined;
    this.#channel.say({ type: this.#vmi === undefined ? 'refused' : 'failed', message });
    // Before that it was nobody's business here.
    if (this.#vmi !== undefined) notes.recordFailure(this.#id, MIGRATION_ABORTED_REASON, message);
    return undefined;
  }
}

function readSent({ nvram, sha256 }: SentWord): Sent {
  if (nvram === undefined) return {};
  const bytes = Buffer.from(nvram, 'base64');
  if (createHash('sha256').update(bytes).digest('hex') !== sha256) {
    throw new Error('the EFI variables did not come as they were sent');
  }
  return { nvram: bytes };
}
