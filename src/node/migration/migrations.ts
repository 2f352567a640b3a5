/**
 * The guests of this node that go and come, as far as this process knows: sessions, and questions to sources by which a
 * guest was cut off. All of it may be forgotten; what was promised is in the records of the hypervisor.
 */
import type { Duplex } from 'node:stream';
import type { MigrationProgress } from '#api/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import { invariant } from '#lib/invariant.ts';
import { getIfExists, volumeLookups } from '#node/domains/start-domain.ts';
import type { MigrationGate } from '#node/endpoint/endpoint-agent.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import { Channel } from '#node/migration/channel.ts';
import type { AskOutcome, Begin, Outcome, StillThere } from '#node/migration/messages.ts';
import { readFromSource, readOutcome } from '#node/migration/read-message.ts';
import { SourceSession } from '#node/migration/source-session.ts';
import {
  TargetSession,
  type SourceChannel,
  type Standstill,
  type TargetParts,
} from '#node/migration/target-session.ts';
import { outcomeOf, writtenVerdict } from '#node/migration/verdict.ts';
import type { Peers } from '#node/peers-port.ts';

/** For decisions about one guest. */
export interface MigrationNotes {
  /** The last one on its way out. */
  readonly outgoing?: {
    readonly uid: string;
    readonly progress: MigrationProgress;
    readonly isOver: boolean;
    /** What became of it is told in a moment, and not now. */
    readonly holdsWord?: boolean;
  };
  /** One that is on its way in right now. */
  readonly incoming?: { readonly uid: string };
  /** The last one that came. */
  readonly arrival?: Standstill & { readonly uid: string };
  /** What is known of one that was cut off; due by Clock.elapsed. */
  readonly question?: Question;
}

export interface Question {
  readonly uid: string;
  readonly answer?: 'migrated' | 'aborted';
  readonly isAsked: boolean;
  readonly tries: number;
  readonly dueAtMs: number;
}

export interface MigrationsParts extends Omit<TargetParts, 'onChange'> {
  readonly peers: Peers | undefined;
  readonly signal: AbortSignal;
}

const NOTHING: MigrationNotes = {};
const FIRST_WORD_MS = 10_000;
const ASK_AGAIN = { firstMs: 200, maxMs: 10_000 };
/** More than ever come to a node at a time; each may hold a preparation. */
const MAX_INCOMING = 64;
const STOPPING_MS = 5000;

export class Migrations implements MigrationGate {
  readonly #parts: MigrationsParts & Pick<TargetParts, 'onChange'>;
  readonly #outgoing = new Map<string, SourceSession>();
  readonly #incoming = new Map<string, TargetSession>();
  readonly #arrivals = new Map<string, NonNullable<MigrationNotes['arrival']>>();
  readonly #questions = new Map<string, Question>();
  readonly #running = new Set<Promise<unknown>>();
  #onChange: (id: string) => void = () => {};

  constructor(parts: MigrationsParts) {
    this.#parts = { ...parts, onChange: (id) => this.#onChange(id) };
  }

  /** Who decides about guests, when something is new with one. */
  follow(onChange: (id: string) => void): void {
    this.#onChange = onChange;
  }

  of(id: string): MigrationNotes {
    const outgoing = this.#outgoing.get(id);
    const incoming = this.#incoming.get(id);
    const arrival = this.#arrivals.get(id);
    const question = this.#questions.get(id);
    if ([outgoing, incoming, arrival, question].every((note) => note === undefined)) return NOTHING;
    return {
      ...(outgoing && { outgoing: told(outgoing) }),
      ...(incoming && { incoming: { uid: incoming.uid } }),
      ...(arrival && { arrival }),
      ...(question && { question }),
    };
  }

  /** Whether the guest is being sent right now: nobody else may touch it. */
  isSending(id: string): boolean {
    return this.#outgoing.get(id)?.isOver === false;
  }

  /** Begins to send the guest where its instance says; nothing happens where that goes on already. */
  begin(vmi: Stored<VirtualMachineInstance>): void {
    const { uid: id } = vmi.metadata;
    const { migrationUid: uid, targetNode, migrationConfiguration: configuration } = vmi.status?.migrationState ?? {};
    invariant(uid !== undefined && targetNode !== undefined, 'what is sent has somewhere to go');
    if (this.isSending(id) || this.#parts.signal.aborted) return;
    const { client, signal } = this.#parts;
    const session = new SourceSession(
      { uid, vmi, target: targetNode, configuration },
      { ...this.#parts, lookups: (namespace) => volumeLookups(namespace, client, signal) },
    );
    this.#outgoing.set(id, session);
    void this.#run(session.run());
  }

  /** Where there is nothing to abort, nothing happens. */
  abort(id: string, why: string): void {
    const outgoing = this.#outgoing.get(id);
    if (outgoing?.isOver === false) outgoing.abort(why);
    this.#incoming.get(id)?.abort(why);
  }

  /** Asks the source, and what is written of it, what became of a guest that is stored here; the answer is in `of`. */
  ask(domain: Domain): void {
    const { id, migration } = domain;
    invariant(migration?.role === 'target', 'a source is asked for what comes from it');
    const { uid } = migration;
    const before = this.#questions.get(id);
    if (before?.uid === uid && (before.isAsked || before.answer !== undefined)) return;
    const tries = (before?.uid === uid ? before.tries : 0) + 1;
    const question = { uid, tries, dueAtMs: this.#parts.clock.elapsed() + backoffMs(tries, ASK_AGAIN) };
    this.#questions.set(id, { ...question, isAsked: true });
    const asking = async () => {
      const answer = await this.#askedOutcome(domain, uid, migration.peer);
      this.#questions.set(id, { ...question, isAsked: false, ...(answer && { answer }) });
      this.#parts.onChange(id);
    };
    void this.#run(asking());
  }

  /** The guest goes on here; `uid` is that of the migration with which it came. */
  wentOn(id: string, uid: string | undefined): void {
    const arrival = this.#arrivals.get(id);
    if (arrival === undefined || arrival.uid !== uid || arrival.downtimeMs !== undefined) return;
    const downtimeMs = Math.round(this.#parts.clock.elapsed() - arrival.sinceMs);
    this.#arrivals.set(id, { ...arrival, downtimeMs });
  }

  /** Nothing of the guest is here any more. What still goes on stays. */
  forget(id: string): void {
    if (!this.isSending(id)) this.#outgoing.delete(id);
    this.#arrivals.delete(id);
    if (this.#questions.get(id)?.isAsked !== true) this.#questions.delete(id);
  }

  async accept(from: string, stream: Duplex): Promise<void> {
    const channel: SourceChannel = new Channel(stream, { clock: this.#parts.clock, read: readFromSource });
    try {
      const first = await channel.next({ timeoutMs: FIRST_WORD_MS, signal: this.#parts.signal });
      if (first.type === 'outcome') await channel.send(this.#answer(first, from));
      else if (first.type === 'begin') await this.#takeIn(first, from, channel);
    } catch (err) {
      this.#parts.log.debug({ err, from }, 'an agent was cut off');
    } finally {
      channel.close();
    }
  }

  /** Guests that are on their way out stay here, where that is still to be had; it is not waited for long. */
  async stop(): Promise<void> {
    for (const id of [...this.#outgoing.keys(), ...this.#incoming.keys()]) {
      this.abort(id, 'the agent of the node was stopped');
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const stopTimer = this.#parts.clock.after(STOPPING_MS, resolve);
    await Promise.race([Promise.all(this.#running), promise]);
    stopTimer();
  }

  async #takeIn(begin: Begin, from: string, channel: SourceChannel): Promise<void> {
    const { uid: id } = begin.instance;
    if (this.#incoming.has(id) || this.#incoming.size >= MAX_INCOMING || this.#parts.signal.aborted) {
      await channel.send({ type: 'refused', message: 'the node takes no more guests in at the moment' });
      return;
    }
    const session = new TargetSession(begin, from, channel, this.#parts);
    this.#incoming.set(id, session);
    const coming = async () => {
      const answer = await session.run();
      const { uid, standstill } = session;
      this.#incoming.delete(id);
      if (standstill !== undefined) this.#arrivals.set(id, { uid, ...standstill });
      if (answer !== undefined) {
        this.#questions.set(id, { uid, answer, isAsked: false, tries: 0, dueAtMs: 0 });
      }
      this.#parts.onChange(id);
    };
    await this.#run(coming());
  }

  #answer({ uid, instanceUid }: AskOutcome, from: string): Outcome {
    const domain = this.#parts.hypervisor.get(instanceUid);
    const session = this.#outgoing.get(instanceUid);
    const isUnderWay = session?.uid === uid && !session.isOver && !session.hasMigrated;
    const { migration } = domain ?? {};
    // Others have nothing to ask, and it is nothing to them.
    const isOther = migration?.uid === uid && migration.role === 'source' && migration.peer !== from;
    return { type: 'outcome', is: isOther ? 'undecided' : outcomeOf(domain, uid, isUnderWay) };
  }

  async #askedOutcome(domain: Domain, uid: string, source: string): Promise<'migrated' | 'aborted' | undefined> {
    try {
      const written = await this.#written(domain, uid);
      if (written !== undefined) return written;
      const answer = await this.#askSource(domain, uid, source);
      // The source may have forgotten that it migrated, once that was written.
      if (answer === 'aborted') return (await this.#written(domain, uid)) ?? 'aborted';
      return answer === 'migrated' ? answer : undefined;
    } catch (err) {
      this.#parts.log.warn({ err, domain: domain.id, source }, 'Cannot learn what became of a migration; asking again');
      return undefined;
    }
  }

  async #written({ id, name }: Domain, uid: string): Promise<'migrated' | 'aborted' | undefined> {
    const { client, node, signal } = this.#parts;
    const [namespace = '', vmiName = ''] = name.split('/');
    const vmi = await getIfExists(client, VIRTUAL_MACHINE_INSTANCES, { namespace, name: vmiName }, signal);
    return vmi?.metadata.uid === id ? writtenVerdict(vmi, uid, node.name) : undefined;
  }

  async #askSource({ id }: Domain, uid: string, source: string): Promise<Outcome['is']> {
    const { peers, clock, signal } = this.#parts;
    if (peers === undefined) throw new Error('this node cannot reach others');
    const stream = await peers.open(source, { signal });
    const channel = new Channel<AskOutcome, Outcome | StillThere>(stream, { clock, read: readOutcome });
    try {
      await channel.send({ type: 'outcome', uid, instanceUid: id });
      const answer = await channel.next({ timeoutMs: FIRST_WORD_MS, signal });
      return answer.type === 'outcome' ? answer.is : 'undecided';
    } finally {
      channel.close();
    }
  }

  #run(work: Promise<void>): Promise<void> {
    this.#running.add(work);
    return work.finally(() => this.#running.delete(work));
  }
}

function told({ uid, progress, isOver, holdsWord }: SourceSession): NonNullable<MigrationNotes['outgoing']> {
  return { uid, progress, isOver, holdsWord };
}
