/**
 * The source's part of one migration. Runs in the background: it does not hold the domain's lock while memory and disks are
 * copied, but only while the guest is paused, until it belongs to the target or is resumed here.
 *
 *   Connecting ─► Copying ─► Switching ─► Committed ─ arrived ─► left
 *        └───────────┴───────────┴──────► guest taken back, target notified, Failed
 *
 * After any failure before `migrated` is on disk, the guest is taken back. If that fails, too, or this process ends, the
 * domain controller continues from the record of the hypervisor.
 */
import { createHash } from 'node:crypto';
import type { MigrationConfiguration, MigrationProgress } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { delay } from '#client/abort.ts';
import type { Stored } from '#kube/meta.ts';
import { parseQuantity, quantityToNumber } from '#kube/quantity.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { raceSignal } from '#lib/race-signal.ts';
import type { DomainLocks } from '#node/guests/domain-locks.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { TransferredState } from '#node/hypervisor/migration.ts';
import { Channel } from '#node/migration/channel.ts';
import { describeGuest } from '#node/migration/describe-guest.ts';
import type { BeginMessage, FromSource, FromTarget } from '#node/migration/messages.ts';
import { ProgressReporter } from '#node/migration/progress-reporter.ts';
import { readFromTarget } from '#node/migration/read-message.ts';
import type { Peers } from '#node/migration/peers.ts';
import type { VolumeLookups } from '#node/volumes/volumes-port.ts';
import { errorMessage } from '#lib/error-message.ts';

interface SourceParts {
  readonly hypervisor: Hypervisor;
  readonly locks: DomainLocks;
  readonly peers: Peers | undefined;
  readonly clock: Clock;
  readonly log: Log;
  lookups(namespace: string | undefined, signal: AbortSignal): VolumeLookups;
  /** Called when the progress has changed. */
  onChange(id: string): void;
}

interface SourceRequest {
  readonly uid: string;
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly target: string;
  readonly configuration: MigrationConfiguration | undefined;
}

type TargetChannel = Channel<FromSource, FromTarget>;

/** Time to connect to the target, and again for its preparation. */
const PREPARE_TIMEOUT_MS = 60_000;
const STORE_TIMEOUT_MS = 60_000;
const ARRIVAL_TIMEOUT_MS = 60_000;
/**
 * Time for which the report of the migration waits for the arrival, to contain the downtime. The delay is harmless, because
 * the target reports the migration, too.
 */
const ARRIVAL_REPORT_DELAY_MS = 1000;
const CONNECT_BACKOFF = { firstMs: 100, maxMs: 2000 };
const GIB = 1024 ** 3;
const DEFAULTS = { completionTimeoutPerGiB: 150, progressTimeout: 150 };

export class SourceSession {
  readonly uid: string;
  readonly #id: string;
  readonly #request: SourceRequest;
  readonly #parts: SourceParts;
  readonly #reporter: ProgressReporter;
  readonly #controller = new AbortController();
  #isOver = false;
  #isTakenBack = false;
  #connectError = 'it does not answer';
  #awaitsStored = false;
  #withholdsReport = false;
  #hasMigrated = false;
  #pausedAtMs = 0;
  readonly #stored = Promise.withResolvers<void>();

  constructor(request: SourceRequest, parts: SourceParts) {
    this.uid = request.uid;
    this.#id = request.vmi.metadata.uid;
    this.#request = request;
    this.#parts = parts;
    this.#reporter = new ProgressReporter(request.uid, {
      clock: parts.clock,
      onChange: () => parts.onChange(this.#id),
    });
  }

  get progress(): MigrationProgress {
    return this.#reporter.reported;
  }

  /** Reports whether the session has ended. The outcome is in the progress, or only in the hypervisor's record. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Reports whether the guest has migrated and its downtime is not known yet. A report without it would be final, so it is
   * withheld for a moment.
   */
  get withholdsReport(): boolean {
    return this.#withholdsReport;
  }

  /**
   * Reports whether `migrated` is durable. The hypervisor may report that step before, while it is being written and can
   * still fail.
   */
  get hasMigrated(): boolean {
    return this.#hasMigrated;
  }

  /** Aborts the migration. Does nothing if the guest belongs to the target. */
  abort(why: string): void {
    this.#controller.abort(new Error(why));
  }

  /** Runs the session to its end. Never rejects. */
  async run(): Promise<void> {
    let channel: TargetChannel | undefined;
    try {
      const stopTimeout = this.#parts.clock.after(PREPARE_TIMEOUT_MS, () =>
        this.abort(`cannot connect to the target node: ${this.#connectError}`),
      );
      this.#reporter.startReporting();
      const open = (channel = await raceSignal(this.#connect(), this.#controller.signal).finally(stopTimeout));
      const { begin, endpoint } = await raceSignal(this.#prepare(open), this.#controller.signal);
      await this.#copy(open, begin, endpoint);
      await this.#parts.locks.run(this.#id, () => this.#switchOver(open));
      await this.#waitForArrival(open);
    } catch (error) {
      await this.#fail(channel, error);
    } finally {
      channel?.close();
      this.#isOver = true;
      this.#parts.onChange(this.#id);
    }
  }

  async #connect(): Promise<TargetChannel> {
    const { peers, clock } = this.#parts;
    const { signal } = this.#controller;
    if (peers === undefined) throw new Error('this node has no connections to other node agents');
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted();
      try {
        const stream = await peers.open(this.#request.target, { signal });
        const channel: TargetChannel = new Channel(stream, { clock, read: readFromTarget });
        if (signal.aborted) channel.close();
        return channel;
      } catch (error) {
        this.#connectError = errorMessage(error);
        // The target may be starting. PREPARE_TIMEOUT_MS limits the retries.
        await delay(clock, backoffMs(tries, CONNECT_BACKOFF), { signal });
      }
    }
  }

  async #prepare(channel: TargetChannel) {
    const { hypervisor, lookups } = this.#parts;
    const { uid, vmi } = this.#request;
    const { signal } = this.#controller;
    const domain = hypervisor.get(this.#id);
    if (domain === undefined) throw new Error('the guest no longer exists');
    const found = { hypervisor, lookups: lookups(vmi.metadata.namespace, signal) };
    const begin = await describeGuest(uid, vmi, domain, found);
    await channel.send(begin);
    const answer = await channel.next({ signal, timeoutMs: PREPARE_TIMEOUT_MS });
    if (answer.type === 'ready') return { begin, endpoint: answer.door };
    throw new Error(failureText(answer));
  }

  async #copy(channel: TargetChannel, begin: BeginMessage, endpoint: Extract<FromTarget, { type: 'ready' }>['door']) {
    const { hypervisor, clock } = this.#parts;
    const { configuration = {}, target, uid } = this.#request;
    void this.#watchTarget(channel);
    this.#reporter.enter('Copying');
    const progressMs = (configuration.progressTimeout ?? DEFAULTS.progressTimeout) * 1000;
    let processed = -1;
    let stopTimer = () => {};
    const restartStallTimer = () => {
      stopTimer();
      const why = `nothing was copied for ${progressMs / 1000} seconds`;
      stopTimer = clock.after(progressMs, () => this.abort(why));
    };
    restartStallTimer();
    const { bandwidthPerMigration, allowAutoConverge = false } = configuration;
    const bytesPerSecond = Math.round(quantityToNumber(parseQuantity(String(bandwidthPerMigration ?? 0))));
    const outgoing = {
      uid,
      peer: target,
      endpoint,
      disks: begin.disks,
      bytesPerSecond,
      autoConverge: allowAutoConverge,
    };
    const stopTimeout = this.#limit(completionMs(begin, configuration), 'the copy was not complete in time');
    try {
      await hypervisor.send(this.#id, outgoing, {
        signal: this.#controller.signal,
        onProgress: (progress) => {
          if (progress.processedBytes !== processed) restartStallTimer();
          processed = progress.processedBytes;
          this.#reporter.recordCopied(progress);
        },
      });
    } finally {
      stopTimer();
      stopTimeout();
    }
    this.#pausedAtMs = clock.elapsed();
  }

  /** Holds the domain's lock, so that nothing else changes the guest. After a failure the guest is resumed at once. */
  async #switchOver(channel: TargetChannel): Promise<void> {
    const { hypervisor, clock } = this.#parts;
    try {
      this.#controller.signal.throwIfAborted();
      this.#reporter.enter('Switching');
      const sent = await hypervisor.switchOver(this.#id);
      this.#awaitsStored = true;
      // If the message is lost, the target does not store the guest, and the timer below aborts.
      const standsStillMs = Math.max(0, Math.round(clock.elapsed() - this.#pausedAtMs));
      channel.trySend({ type: 'sent', standsStillMs, ...encodeNvram(sent) });
      const stopTimeout = this.#limit(STORE_TIMEOUT_MS, 'the target node did not store the guest in time');
      await raceSignal(this.#stored.promise, this.#controller.signal).finally(stopTimeout);
      this.#controller.signal.throwIfAborted();
      this.#withholdsReport = true;
      await hypervisor.recordMigrated(this.#id);
      this.#hasMigrated = true;
    } catch (error) {
      this.#withholdsReport = false;
      await this.#takeBack();
      throw error;
    }
    // The guest belongs to the target even if this message is lost.
    channel.trySend({ type: 'migrated' });
  }

  async #waitForArrival(channel: TargetChannel): Promise<void> {
    const { hypervisor, locks, clock, log } = this.#parts;
    const reportCommitted = (more: Partial<MigrationProgress> = {}) => {
      this.#withholdsReport = false;
      this.#reporter.enter('Committed', more);
    };
    const stopTimer = clock.after(ARRIVAL_REPORT_DELAY_MS, reportCommitted);
    try {
      const answer = await channel.next({ timeoutMs: ARRIVAL_TIMEOUT_MS });
      if (answer.type !== 'arrived') throw new Error(failureText(answer));
      stopTimer();
      reportCommitted({ downtimeMs: answer.downtimeMs });
      await locks.run(this.#id, () => hypervisor.leave(this.#id));
    } catch (err) {
      log.warn({ err, domain: this.#id }, 'The target node did not confirm the arrival of a migrated guest');
      if (this.#withholdsReport) reportCommitted();
    } finally {
      stopTimer();
    }
  }

  /** Aborts the migration if the target sends an unexpected message or its connection is lost. */
  async #watchTarget(channel: TargetChannel): Promise<void> {
    try {
      const answer = await channel.next({ signal: this.#controller.signal });
      if (answer.type === 'stored' && this.#awaitsStored) this.#stored.resolve();
      else this.abort(failureText(answer));
    } catch (error) {
      this.abort(errorMessage(error));
    }
  }

  async #fail(channel: TargetChannel | undefined, error: unknown): Promise<void> {
    const { locks, log } = this.#parts;
    const message = errorMessage(error);
    try {
      if (!this.#isTakenBack) await locks.run(this.#id, () => this.#takeBack());
    } catch (err) {
      // Nothing is reported: the record decides, and it may say `migrated`.
      log.error({ err, domain: this.#id }, 'Cannot take back a guest after a failed migration; it will be tried again');
      return;
    }
    // Only now is the migration certain to have failed, so that the target may be notified.
    channel?.trySend({ type: 'aborted', message });
    this.#reporter.enter('Failed', { message });
  }

  async #takeBack(): Promise<void> {
    const { hypervisor } = this.#parts;
    const domain = hypervisor.get(this.#id);
    const isSending = domain?.migration?.uid === this.uid && domain.migration.role === 'source';
    if (isSending && domain.current.state !== 'ended') await hypervisor.abortMigration(this.#id);
    this.#isTakenBack = true;
  }

  #limit(ms: number, why: string): () => void {
    return this.#parts.clock.after(ms, () => this.abort(why));
  }
}

function completionMs(
  { definition, disks }: BeginMessage,
  { completionTimeoutPerGiB }: MigrationConfiguration,
): number {
  const bytes = disks.reduce((sum, disk) => sum + disk.bytes, definition.memoryKib * 1024);
  const perGib = completionTimeoutPerGiB ?? DEFAULTS.completionTimeoutPerGiB;
  return Math.max(1, bytes / GIB) * perGib * 1000;
}

function encodeNvram({ nvram }: TransferredState): { nvram?: string; sha256?: string } {
  if (nvram === undefined) return {};
  return { nvram: nvram.toString('base64'), sha256: createHash('sha256').update(nvram).digest('hex') };
}

function failureText(answer: FromTarget): string {
  if (answer.type === 'refused' || answer.type === 'failed') return answer.message;
  return `the target node sent an unexpected message "${answer.type}"`;
}
