/**
 * One guest on its way out, in the background: it does not hold the domain's turn while memory and disks are copied, only
 * from the moment at which the guest stands still until it belongs to the target, or goes on here.
 *
 *   Connecting ─► Copying ─► Switching ─► Committed ─ arrived ─► left
 *        └───────────┴───────────┴──────► taken back; then the target is told, and Failed
 *
 * Whatever goes wrong before `migrated` is on disk takes the guest back. Where even that fails, or this process ends, the
 * record of the hypervisor is all there is, and the domain loop goes on from it.
 */
import { createHash } from 'node:crypto';
import type { MigrationConfiguration, MigrationProgress } from '#api/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { delay } from '#client/abort.ts';
import type { Stored } from '#kube/meta.ts';
import { parseQuantity, quantityToNumber } from '#kube/quantity.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { raced } from '#lib/raced.ts';
import type { Turns } from '#node/domains/turns.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Sent } from '#node/hypervisor/migration.ts';
import { Channel } from '#node/migration/channel.ts';
import { describeGuest } from '#node/migration/describe-guest.ts';
import type { Begin, FromSource, FromTarget } from '#node/migration/messages.ts';
import { ProgressNotes } from '#node/migration/progress-notes.ts';
import { readFromTarget } from '#node/migration/read-message.ts';
import type { Peers } from '#node/peers-port.ts';
import type { VolumeLookups } from '#node/volumes-port.ts';

export interface SourceParts {
  readonly hypervisor: Hypervisor;
  readonly turns: Turns;
  readonly peers: Peers | undefined;
  readonly clock: Clock;
  readonly log: Log;
  lookups(namespace: string | undefined, signal: AbortSignal): VolumeLookups;
  /** Something is to be told. */
  onChange(id: string): void;
}

export interface SourceWish {
  readonly uid: string;
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly target: string;
  readonly configuration: MigrationConfiguration | undefined;
}

type TargetChannel = Channel<FromSource, FromTarget>;

/** Until it is reached, and again until it waits for the guest. */
const PREPARING_MS = 60_000;
const STORING_MS = 60_000;
const ARRIVING_MS = 60_000;
/** How long the word that a guest has gone waits for the word that it arrived. It costs nothing: the target tells, too. */
const WORD_MS = 1000;
const CONNECT_BACKOFF = { firstMs: 100, maxMs: 2000 };
const GIB = 1024 ** 3;
const DEFAULTS = { completionTimeoutPerGiB: 150, progressTimeout: 150 };

export class SourceSession {
  readonly uid: string;
  readonly #id: string;
  readonly #wish: SourceWish;
  readonly #parts: SourceParts;
  readonly #notes: ProgressNotes;
  readonly #ending = new AbortController();
  #isOver = false;
  #isTakenBack = false;
  /** Why it was not reached. */
  #fault = 'it does not answer';
  #awaitsStored = false;
  #holdsWord = false;
  #hasMigrated = false;
  #stoodStillAtMs = 0;
  readonly #stored = Promise.withResolvers<void>();

  constructor(wish: SourceWish, parts: SourceParts) {
    this.uid = wish.uid;
    this.#id = wish.vmi.metadata.uid;
    this.#wish = wish;
    this.#parts = parts;
    this.#notes = new ProgressNotes(wish.uid, { clock: parts.clock, onChange: () => parts.onChange(this.#id) });
  }

  get progress(): MigrationProgress {
    return this.#notes.told;
  }

  /** Nothing more comes of it; what became of the guest is in the progress, or in the hypervisor's record alone. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** It has gone, and in a moment there is more to say: how long it stood still. Whoever is told now does not listen then. */
  get holdsWord(): boolean {
    return this.#holdsWord;
  }

  /** That the guest is the target's is on disk. What the hypervisor tells may be on its way there, and fail. */
  get hasMigrated(): boolean {
    return this.#hasMigrated;
  }

  /** Nothing happens once the guest is the target's. */
  abort(why: string): void {
    this.#ending.abort(new Error(why));
  }

  /** Never rejects. */
  async run(): Promise<void> {
    let channel: TargetChannel | undefined;
    try {
      const limited = this.#parts.clock.after(PREPARING_MS, () =>
        this.abort(`the target is not reached: ${this.#fault}`),
      );
      this.#notes.startTelling();
      const open = (channel = await raced(this.#connect(), this.#ending.signal).finally(limited));
      const { begin, door } = await raced(this.#prepare(open), this.#ending.signal);
      await this.#copy(open, begin, door);
      await this.#parts.turns.take(this.#id, () => this.#handOver(open));
      await this.#followUp(open);
    } catch (error) {
      await this.#giveUp(channel, error);
    } finally {
      channel?.close();
      this.#isOver = true;
      this.#parts.onChange(this.#id);
    }
  }

  async #connect(): Promise<TargetChannel> {
    const { peers, clock } = this.#parts;
    const { signal } = this.#ending;
    if (peers === undefined) throw new Error('this node cannot reach others');
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        const stream = await peers.open(this.#wish.target, { signal });
        const channel: TargetChannel = new Channel(stream, { clock, read: readFromTarget });
        if (signal.aborted) channel.close();
        return channel;
      } catch (error) {
        this.#fault = error instanceof Error ? error.message : String(error);
        // It may be starting; how long that is tried is limited.
        await delay(clock, backoffMs(tries, CONNECT_BACKOFF), { signal });
      }
    }
  }

  async #prepare(channel: TargetChannel) {
    const { hypervisor, lookups } = this.#parts;
    const { uid, vmi } = this.#wish;
    const { signal } = this.#ending;
    const domain = hypervisor.get(this.#id);
    if (domain === undefined) throw new Error('the guest is not there any more');
    const found = { hypervisor, lookups: lookups(vmi.metadata.namespace, signal) };
    const begin = await describeGuest(uid, vmi, domain, found);
    await channel.send(begin);
    const answer = await channel.next({ signal, timeoutMs: PREPARING_MS });
    if (answer.type === 'ready') return { begin, door: answer.door };
    throw new Error(toldBy(answer));
  }

  async #copy(channel: TargetChannel, begin: Begin, door: Extract<FromTarget, { type: 'ready' }>['door']) {
    const { hypervisor, clock } = this.#parts;
    const { configuration = {}, target, uid } = this.#wish;
    void this.#watch(channel);
    this.#notes.enter('Copying');
    const progressMs = (configuration.progressTimeout ?? DEFAULTS.progressTimeout) * 1000;
    let processed = -1;
    let stopTimer = () => {};
    const goesOn = () => {
      stopTimer();
      const why = `nothing was copied for ${progressMs / 1000} seconds`;
      stopTimer = clock.after(progressMs, () => this.abort(why));
    };
    goesOn();
    const { bandwidthPerMigration, allowAutoConverge = false } = configuration;
    const bytesPerSecond = Math.round(quantityToNumber(parseQuantity(String(bandwidthPerMigration ?? 0))));
    const outgoing = { uid, peer: target, door, disks: begin.disks, bytesPerSecond, autoConverge: allowAutoConverge };
    const limited = this.#limit(completionMs(begin, configuration), 'it was not complete in time');
    try {
      await hypervisor.send(this.#id, outgoing, {
        signal: this.#ending.signal,
        onProgress: (progress) => {
          if (progress.processedBytes !== processed) goesOn();
          processed = progress.processedBytes;
          this.#notes.copied(progress);
        },
      });
    } finally {
      stopTimer();
      limited();
    }
    this.#stoodStillAtMs = clock.elapsed();
  }

  /** In the domain's turn: nobody else touches the guest meanwhile, and whatever fails lets it go on at once. */
  async #handOver(channel: TargetChannel): Promise<void> {
    const { hypervisor, clock } = this.#parts;
    try {
      this.#ending.signal.throwIfAborted();
      this.#notes.enter('Switching');
      const sent = await hypervisor.switchOver(this.#id);
      this.#awaitsStored = true;
      // Where it does not arrive, nothing is stored.
      const standsStillMs = Math.max(0, Math.round(clock.elapsed() - this.#stoodStillAtMs));
      channel.say({ type: 'sent', standsStillMs, ...told(sent) });
      const limited = this.#limit(STORING_MS, 'the target did not store the guest in time');
      await raced(this.#stored.promise, this.#ending.signal).finally(limited);
      this.#ending.signal.throwIfAborted();
      this.#holdsWord = true;
      await hypervisor.recordMigrated(this.#id);
      this.#hasMigrated = true;
    } catch (error) {
      this.#holdsWord = false;
      await this.#takeBack();
      throw error;
    }
    // It is the target's now, whether or not it hears so from us.
    channel.say({ type: 'migrated' });
  }

  async #followUp(channel: TargetChannel): Promise<void> {
    const { hypervisor, turns, clock, log } = this.#parts;
    const told = (more: Partial<MigrationProgress> = {}) => {
      this.#holdsWord = false;
      this.#notes.enter('Committed', more);
    };
    const stopTimer = clock.after(WORD_MS, told);
    try {
      const answer = await channel.next({ timeoutMs: ARRIVING_MS });
      if (answer.type !== 'arrived') throw new Error(toldBy(answer));
      stopTimer();
      told({ downtimeMs: answer.downtimeMs });
      await turns.take(this.#id, () => hypervisor.leave(this.#id));
    } catch (err) {
      log.warn({ err, domain: this.#id }, 'A guest has gone to another node, which did not say that it arrived');
      if (this.#holdsWord) told();
    } finally {
      stopTimer();
    }
  }

  /** What the target says while it has nothing to say ends the migration; so does that it is gone. */
  async #watch(channel: TargetChannel): Promise<void> {
    try {
      const answer = await channel.next({ signal: this.#ending.signal });
      if (answer.type === 'stored' && this.#awaitsStored) this.#stored.resolve();
      else this.abort(toldBy(answer));
    } catch (error) {
      this.abort(error instanceof Error ? error.message : String(error));
    }
  }

  async #giveUp(channel: TargetChannel | undefined, error: unknown): Promise<void> {
    const { turns, log } = this.#parts;
    const message = error instanceof Error ? error.message : String(error);
    try {
      if (!this.#isTakenBack) await turns.take(this.#id, () => this.#takeBack());
    } catch (err) {
      // Not a word to anybody: the record decides, and it may say that the guest has gone.
      log.error({ err, domain: this.#id }, 'Cannot take back a guest whose migration failed; trying again');
      return;
    }
    // Not before: what the target is told must be true for good.
    channel?.say({ type: 'aborted', message });
    this.#notes.enter('Failed', { message });
  }

  async #takeBack(): Promise<void> {
    const { hypervisor } = this.#parts;
    const domain = hypervisor.get(this.#id);
    const isSending = domain?.migration?.uid === this.uid && domain.migration.role === 'source';
    if (isSending && domain.current.state !== 'ended') await hypervisor.takeBack(this.#id);
    this.#isTakenBack = true;
  }

  #limit(ms: number, why: string): () => void {
    return this.#parts.clock.after(ms, () => this.abort(why));
  }
}

function completionMs({ definition, disks }: Begin, { completionTimeoutPerGiB }: MigrationConfiguration): number {
  const bytes = disks.reduce((sum, disk) => sum + disk.bytes, definition.memoryKib * 1024);
  const perGib = completionTimeoutPerGiB ?? DEFAULTS.completionTimeoutPerGiB;
  return Math.max(1, bytes / GIB) * perGib * 1000;
}

function told({ nvram }: Sent): { nvram?: string; sha256?: string } {
  if (nvram === undefined) return {};
  return { nvram: nvram.toString('base64'), sha256: createHash('sha256').update(nvram).digest('hex') };
}

function toldBy(answer: FromTarget): string {
  if (answer.type === 'refused' || answer.type === 'failed') return answer.message;
  return `the target said "${answer.type}", which was not its turn to say`;
}
