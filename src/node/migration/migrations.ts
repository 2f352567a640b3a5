/**
 * The migrations to and from this node: sessions, and queries to the sources of interrupted migrations. Kept in memory only;
 * the hypervisor's records on disk hold everything that must survive this process.
 */
import { readInstance } from '#node/guests/read-instance.ts';
import type { Duplex } from 'node:stream';
import type { MigrationProgress } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { backoffMs } from '#lib/backoff.ts';
import { invariant } from '#lib/invariant.ts';
import { volumeLookups } from '#node/guests/volume-lookups.ts';
import type { MigrationAcceptor } from '#node/endpoint/endpoint-agent.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import { Channel } from '#node/migration/channel.ts';
import type { OutcomeRequest, BeginMessage, OutcomeResponse, KeepAlive } from '#node/migration/messages.ts';
import { readFromSource, readOutcome } from '#node/migration/read-message.ts';
import { SourceSession } from '#node/migration/source-session.ts';
import { TargetSession, type SourceChannel, type Downtime, type TargetParts } from '#node/migration/target-session.ts';
import { sourceOutcome, concludedOutcome } from '#node/migration/migration-outcome.ts';
import type { Peers } from '#node/migration/peers.ts';

/** The migrations of one guest, as input of decisions. */
export interface MigrationNotes {
  /** The last outgoing migration. */
  readonly outgoing?: {
    readonly uid: string;
    readonly progress: MigrationProgress;
    readonly isOver: boolean;
    /** SourceSession.withholdsReport. */
    readonly withholdsReport?: boolean;
  };
  /** The incoming migration that is in progress. */
  readonly incoming?: { readonly uid: string };
  /** The last guest that arrived. */
  readonly arrival?: Downtime & { readonly uid: string };
  /** The query for the outcome of an interrupted incoming migration. */
  readonly outcomeQuery?: OutcomeQuery;
}

interface OutcomeQuery {
  /** Uid of the migration. */
  readonly uid: string;
  readonly answer?: 'migrated' | 'aborted';
  readonly isPending: boolean;
  readonly tries: number;
  /** Time of the next try, by Clock.elapsed. */
  readonly dueAtMs: number;
}

interface MigrationsParts extends Omit<TargetParts, 'onChange'> {
  readonly peers: Peers | undefined;
  readonly signal: AbortSignal;
}

const NO_NOTES: MigrationNotes = {};
const FIRST_MESSAGE_TIMEOUT_MS = 10_000;
const QUERY_BACKOFF = { firstMs: 200, maxMs: 10_000 };
/** More than a node ever receives at the same time. Bounds the preparations. */
const MAX_INCOMING = 64;
const STOP_TIMEOUT_MS = 5000;

export class Migrations implements MigrationAcceptor {
  readonly #parts: MigrationsParts & Pick<TargetParts, 'onChange'>;
  readonly #outgoing = new Map<string, SourceSession>();
  readonly #incoming = new Map<string, TargetSession>();
  readonly #arrivals = new Map<string, NonNullable<MigrationNotes['arrival']>>();
  readonly #queries = new Map<string, OutcomeQuery>();
  readonly #running = new Set<Promise<unknown>>();
  #onChange: (id: string) => void = () => {};

  constructor(parts: MigrationsParts) {
    this.#parts = { ...parts, onChange: (id) => this.#onChange(id) };
  }

  /** Sets the listener, which is called with the id of a domain when its notes have changed. */
  setListener(onChange: (id: string) => void): void {
    this.#onChange = onChange;
  }

  get(id: string): MigrationNotes {
    const outgoing = this.#outgoing.get(id);
    const incoming = this.#incoming.get(id);
    const arrival = this.#arrivals.get(id);
    const outcomeQuery = this.#queries.get(id);
    if ([outgoing, incoming, arrival, outcomeQuery].every((note) => note === undefined)) return NO_NOTES;
    return {
      ...(outgoing && { outgoing: outgoingNotes(outgoing) }),
      ...(incoming && { incoming: { uid: incoming.uid } }),
      ...(arrival && { arrival }),
      ...(outcomeQuery && { outcomeQuery }),
    };
  }

  /** Reports whether the guest is being sent. No other part of the agent may change it then. */
  isSending(id: string): boolean {
    return this.#outgoing.get(id)?.isOver === false;
  }

  /** Starts to send the guest to the target node of its instance. Does nothing if it is being sent. */
  startSending(vmi: Stored<VirtualMachineInstance>): void {
    const { uid: id } = vmi.metadata;
    const { migrationUid: uid, targetNode, migrationConfiguration: configuration } = vmi.status?.migrationState ?? {};
    invariant(uid !== undefined && targetNode !== undefined, 'an outgoing migration has a target');
    if (this.isSending(id) || this.#parts.signal.aborted) return;
    const { client, signal } = this.#parts;
    const session = new SourceSession(
      { uid, vmi, target: targetNode, configuration },
      { ...this.#parts, lookups: (namespace) => volumeLookups(namespace, client, signal) },
    );
    this.#outgoing.set(id, session);
    void this.#run(session.run());
  }

  /** Aborts the migrations of a guest. Does nothing if there are none. */
  abort(id: string, why: string): void {
    const outgoing = this.#outgoing.get(id);
    if (outgoing?.isOver === false) outgoing.abort(why);
    this.#incoming.get(id)?.abort(why);
  }

  /**
   * Finds out whether the migration of a guest that is stored here succeeded: from the instance's status, or from the
   * source. The answer is in `get`.
   */
  queryOutcome(domain: DomainInfo): void {
    const { id, migration } = domain;
    invariant(migration?.role === 'target', 'only the target queries the outcome');
    const { uid } = migration;
    const before = this.#queries.get(id);
    if (before?.uid === uid && (before.isPending || before.answer !== undefined)) return;
    const tries = (before?.uid === uid ? before.tries : 0) + 1;
    const attempt = { uid, tries, dueAtMs: this.#parts.clock.elapsed() + backoffMs(tries, QUERY_BACKOFF) };
    this.#queries.set(id, { ...attempt, isPending: true });
    const query = async () => {
      const answer = await this.#findOutcome(domain, uid, migration.peer);
      this.#queries.set(id, { ...attempt, isPending: false, ...(answer && { answer }) });
      this.#parts.onChange(id);
    };
    void this.#run(query());
  }

  /** Records that the guest was resumed here; `uid` is that of the migration. */
  recordResumed(id: string, uid: string | undefined): void {
    const arrival = this.#arrivals.get(id);
    if (arrival === undefined || arrival.uid !== uid || arrival.downtimeMs !== undefined) return;
    const downtimeMs = Math.round(this.#parts.clock.elapsed() - arrival.sinceMs);
    this.#arrivals.set(id, { ...arrival, downtimeMs });
  }

  /** Forgets a removed guest, except for work that is in progress. */
  forget(id: string): void {
    if (!this.isSending(id)) this.#outgoing.delete(id);
    this.#arrivals.delete(id);
    if (this.#queries.get(id)?.isPending !== true) this.#queries.delete(id);
  }

  async accept(from: string, stream: Duplex): Promise<void> {
    const channel: SourceChannel = new Channel(stream, { clock: this.#parts.clock, read: readFromSource });
    try {
      const first = await channel.next({ timeoutMs: FIRST_MESSAGE_TIMEOUT_MS, signal: this.#parts.signal });
      if (first.type === 'outcome') await channel.send(this.#answerOutcome(first, from));
      else if (first.type === 'begin') await this.#receive(first, from, channel);
    } catch (err) {
      this.#parts.log.debug({ err, from }, 'The connection of another node agent failed');
    } finally {
      channel.close();
    }
  }

  /** Aborts all migrations that can still be aborted. Waits for them only for a short time. */
  async stop(): Promise<void> {
    for (const id of [...this.#outgoing.keys(), ...this.#incoming.keys()]) {
      this.abort(id, 'the node agent was stopped');
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const stopTimer = this.#parts.clock.after(STOP_TIMEOUT_MS, resolve);
    await Promise.race([Promise.all(this.#running), promise]);
    stopTimer();
  }

  async #receive(begin: BeginMessage, from: string, channel: SourceChannel): Promise<void> {
    const { uid: id } = begin.instance;
    if (this.#incoming.has(id) || this.#incoming.size >= MAX_INCOMING || this.#parts.signal.aborted) {
      await channel.send({ type: 'refused', message: 'the target node cannot receive another guest at the moment' });
      return;
    }
    const session = new TargetSession(begin, from, channel, this.#parts);
    this.#incoming.set(id, session);
    const receive = async () => {
      const answer = await session.run();
      const { uid, downtime } = session;
      this.#incoming.delete(id);
      if (downtime !== undefined) this.#arrivals.set(id, { uid, ...downtime });
      if (answer !== undefined) {
        this.#queries.set(id, { uid, answer, isPending: false, tries: 0, dueAtMs: 0 });
      }
      this.#parts.onChange(id);
    };
    await this.#run(receive());
  }

  #answerOutcome({ uid, instanceUid }: OutcomeRequest, from: string): OutcomeResponse {
    const domain = this.#parts.hypervisor.get(instanceUid);
    const session = this.#outgoing.get(instanceUid);
    const isInProgress = session?.uid === uid && !session.isOver && !session.hasMigrated;
    const { migration } = domain ?? {};
    // Only the target of the migration learns its outcome.
    const isOther = migration?.uid === uid && migration.role === 'source' && migration.peer !== from;
    return { type: 'outcome', is: isOther ? 'undecided' : sourceOutcome(domain, uid, isInProgress) };
  }

  async #findOutcome(domain: DomainInfo, uid: string, source: string): Promise<'migrated' | 'aborted' | undefined> {
    try {
      const concluded = await this.#readConclusion(domain, uid);
      if (concluded !== undefined) return concluded;
      const answer = await this.#askSource(domain, uid, source);
      // Once the controller has concluded the migration, the source may have removed its record of it.
      if (answer === 'aborted') return (await this.#readConclusion(domain, uid)) ?? 'aborted';
      return answer === 'migrated' ? answer : undefined;
    } catch (err) {
      this.#parts.log.warn(
        { err, domain: domain.id, source },
        'Cannot find out the outcome of a migration; it will be tried again',
      );
      return undefined;
    }
  }

  async #readConclusion({ id, name }: DomainInfo, uid: string): Promise<'migrated' | 'aborted' | undefined> {
    const { client, node, signal } = this.#parts;
    const [namespace = '', vmiName = ''] = name.split('/');
    const vmi = await readInstance(client, { namespace, name: vmiName }, { signal });
    return vmi?.metadata.uid === id ? concludedOutcome(vmi, uid, node.name) : undefined;
  }

  async #askSource({ id }: DomainInfo, uid: string, source: string): Promise<OutcomeResponse['is']> {
    const { peers, clock, signal } = this.#parts;
    if (peers === undefined) throw new Error('this node has no connections to other node agents');
    const stream = await peers.open(source, { signal });
    const channel = new Channel<OutcomeRequest, OutcomeResponse | KeepAlive>(stream, { clock, read: readOutcome });
    try {
      await channel.send({ type: 'outcome', uid, instanceUid: id });
      const answer = await channel.next({ timeoutMs: FIRST_MESSAGE_TIMEOUT_MS, signal });
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

function outgoingNotes({
  uid,
  progress,
  isOver,
  withholdsReport,
}: SourceSession): NonNullable<MigrationNotes['outgoing']> {
  return { uid, progress, isOver, withholdsReport };
}
