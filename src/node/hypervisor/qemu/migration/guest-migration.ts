/**
 * The migration of one domain: its steps, each of which is on disk before it takes effect (../migration.ts). The
 * commands to QEMU are in send.ts, abort-send.ts and receive.ts.
 */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type {
  IncomingMigration,
  MigrationEndpoint,
  OutgoingMigration,
  SendOptions,
  TransferredState,
  SourceStep,
  TargetStep,
} from '#node/hypervisor/migration.ts';
import { EventSignal } from '#node/hypervisor/qemu/monitor/event-signal.ts';
import { readNvram } from '#node/hypervisor/qemu/state/move-state.ts';
import { isPausedByMigration, accessRefusal, changeRefusal } from '#node/hypervisor/qemu/migration/migration-record.ts';
import type { MigrationRecord, SourceRecord, TargetRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import type { QmpClient, QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { closeEndpoint, openEndpoint, storeGuest } from '#node/hypervisor/qemu/migration/receive.ts';
import { parseRunState } from '#node/hypervisor/qemu/monitor/run-state.ts';
import { releaseEndpoint, sendGuest, finishSend } from '#node/hypervisor/qemu/migration/send.ts';
import type { GuestMigrationContext } from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import { closeRelays } from '#node/hypervisor/qemu/migration/relay.ts';
import { resumeAfterMigration, abortSend } from '#node/hypervisor/qemu/migration/abort-send.ts';

const EVENTS: ReadonlySet<string> = new Set(['MIGRATION', 'JOB_STATUS_CHANGE', 'BLOCK_JOB_READY', 'STOP']);

const PAUSED_SINCE_ABORT = 'the guest is paused since an aborted migration; resume it before the next migration';

interface GuestMigrationParts extends Omit<GuestMigrationContext, 'events' | 'relays'> {
  readonly definition: () => DomainDefinition;
  readonly record: () => MigrationRecord | undefined;
  /** The record is on disk when it resolves. */
  readonly write: (record: MigrationRecord) => Promise<void>;
  /** Sets the record in memory only. */
  readonly setInMemory: (record: MigrationRecord) => void;
  /** Rejects if QEMU cannot be reached or refuses. */
  readonly withQmp: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  readonly hasEnded: () => boolean;
  /** Its disks are being copied, a device is being unplugged, or the guest is frozen. */
  readonly isChanging: () => boolean;
  /** Reads the state from QEMU again. */
  readonly refresh: () => Promise<unknown>;
  /** Ends QEMU, for a guest that runs on another node. */
  readonly quit: () => Promise<void>;
}

export class GuestMigration {
  readonly #parts: GuestMigrationParts;
  readonly #context: GuestMigrationContext;
  /** This process has sent everything. Another process cannot know what the target has received. */
  #hasSentAll = false;
  /** A write of `migrated` failed, so it may or may not be on disk. */
  #mayBeMigrated = false;

  constructor(parts: GuestMigrationParts) {
    this.#parts = parts;
    const { clock, dir, user, files } = parts;
    this.#context = { clock, dir, user, files, events: new EventSignal(), relays: [] };
  }

  onEvent({ name }: QmpEvent): void {
    if (EVENTS.has(name)) this.#context.events.notify();
  }

  /** Ends the relays of this process. */
  close(): void {
    closeRelays(this.#context.relays);
  }

  /** Throws while the guest migrates or is on another node: nothing about it may change then. */
  checkNotMigrating(verb: string): void {
    this.#throwRefusal(verb, changeRefusal(this.#parts.record()));
  }

  /** Throws while the guest is on another node. */
  checkPresent(verb: string): void {
    this.#throwRefusal(verb, accessRefusal(this.#parts.record()));
  }

  async send(outgoing: OutgoingMigration, options: SendOptions): Promise<void> {
    options.signal.throwIfAborted();
    this.#hasSentAll = false;
    const { withQmp, write, refresh, files, record, isChanging } = this.#parts;
    const { uid, peer, disks, endpoint } = outgoing;
    await withQmp('send', async (qmp) => {
      const why =
        changeRefusal(record()) ??
        (isChanging()
          ? 'its disks are being copied, a device is being unplugged, or it is frozen; try again later'
          : undefined);
      if (why !== undefined) throw new HypervisorError(why);
      const found = parseRunState(await qmp.execute('query-status'));
      // QEMU's own refusal does not explain this.
      if (isPausedByMigration(found)) throw new HypervisorError(PAUSED_SINCE_ABORT);
      await write({ uid, peer, disks, role: 'source', step: 'sending', goesOn: found.state === 'running' });
      try {
        await sendGuest(qmp, this.#context, outgoing, options);
      } finally {
        // Existing connections are not affected.
        for (const relay of this.#context.relays) relay.stopListening();
        await releaseEndpoint(files, [endpoint.memory, endpoint.disks]).catch(() => undefined);
      }
    });
    await refresh();
  }

  async switchOver(): Promise<TransferredState> {
    const { disks } = this.#sourceRecord('switch over', ['sending']);
    return this.#parts.withQmp('switch over', async (qmp) => {
      await finishSend(qmp, this.#context, disks);
      this.#hasSentAll = true;
      const nvram = await readNvram(this.#parts.definition());
      return nvram === undefined ? {} : { nvram };
    });
  }

  async recordMigrated(): Promise<void> {
    const record = this.#sourceRecord('record the migration of', ['sending', 'migrated']);
    if (record.step === 'migrated') return;
    if (!this.#hasSentAll) throw this.#error('record the migration of', 'this process has not sent everything');
    this.#mayBeMigrated = true;
    await this.#write(record, { ...record, step: 'migrated' });
    this.#mayBeMigrated = false;
  }

  async leave(): Promise<void> {
    const record = this.#sourceRecord('leave', ['migrated', 'left']);
    await this.#parts.quit();
    this.close();
    if (record.step !== 'left') await this.#write(record, { ...record, step: 'left' });
  }

  async abort(): Promise<void> {
    const { withQmp, hasEnded, refresh } = this.#parts;
    if (this.#parts.record()?.role !== 'source') return;
    const record = this.#sourceRecord('abort the migration of', ['sending', 'aborted']);
    this.#hasSentAll = false;
    // If `migrated` is on disk, it would be taken for the outcome: overwrite it before the guest runs.
    const aborted: SourceRecord = { ...record, step: 'aborted' };
    if (this.#mayBeMigrated) await this.#write(record, aborted);
    this.#mayBeMigrated = false;
    closeRelays(this.#context.relays);
    if (!hasEnded()) {
      await withQmp('abort the migration of', (qmp) => abortSend(qmp, this.#context, record));
    }
    if (this.#parts.record()?.step !== 'aborted') await this.#write(record, aborted);
    if (!hasEnded()) await refresh();
  }

  /** Opens the endpoint of a waiting QEMU. The record is on disk already. */
  openEndpoint(incoming: IncomingMigration): Promise<MigrationEndpoint> {
    return this.#parts.withQmp('receive', (qmp) =>
      openEndpoint(qmp, this.#context, this.#parts.definition(), incoming),
    );
  }

  async store(sent: TransferredState, { signal }: { signal?: AbortSignal }): Promise<void> {
    const record = this.#targetRecord('store', ['waiting', 'stored']);
    if (record.step === 'stored') return;
    await this.#parts.withQmp('store', async (qmp) => {
      await storeGuest(qmp, this.#context, this.#parts.definition(), record.disks, { ...sent, signal });
      await this.#write(record, { ...record, step: 'stored' });
    });
  }

  async commit(): Promise<void> {
    const record = this.#targetRecord('commit', ['stored', 'committed', 'arrived']);
    if (record.step === 'arrived') return;
    const committed: TargetRecord = { ...record, step: 'committed' };
    if (record.step !== 'committed') await this.#write(record, committed);
    await this.#parts.withQmp('commit', async (qmp) => {
      if (record.goesOn) await this.#resumeHere(qmp);
      // After the guest continues, because the paused guest is more urgent.
      await closeEndpoint(qmp, this.#context).catch(() => undefined);
    });
    await this.#write(committed, { ...committed, step: 'arrived' });
    await this.#parts.refresh();
  }

  /** Completes a step that an earlier node agent began and that can no longer be undone. */
  async reconcile(): Promise<void> {
    const record = this.#parts.record();
    if (record?.step === 'committed') await this.commit();
    if (record?.step !== 'aborted' || !record.goesOn) return;
    await this.#parts.withQmp('abort the migration of', (qmp) => resumeAfterMigration(qmp, this.#context));
    await this.#parts.refresh();
  }

  async #resumeHere(qmp: QmpClient): Promise<void> {
    try {
      await qmp.execute('cont');
    } catch (error) {
      // The guest may have shut down at the source just before, so its state has to be read.
      await this.#parts.refresh().catch(() => undefined);
      throw error;
    }
  }

  /** Writes the next record. If that fails, the previous one stays valid, and the caller must not take the step. */
  async #write(before: MigrationRecord, next: MigrationRecord): Promise<void> {
    try {
      await this.#parts.write(next);
    } catch (error) {
      this.#parts.setInMemory(before);
      throw error;
    }
  }

  #sourceRecord(verb: string, steps: readonly SourceStep[]): SourceRecord {
    const record = this.#parts.record();
    if (record?.role === 'source' && steps.includes(record.step)) return record;
    throw this.#wrongStepError(verb, steps);
  }

  #targetRecord(verb: string, steps: readonly TargetStep[]): TargetRecord {
    const record = this.#parts.record();
    if (record?.role === 'target' && steps.includes(record.step)) return record;
    throw this.#wrongStepError(verb, steps);
  }

  #wrongStepError(verb: string, steps: readonly string[]): HypervisorError {
    const record = this.#parts.record();
    const now =
      record === undefined ? 'the guest does not migrate' : `its migration is in step ${record.step} as ${record.role}`;
    return this.#error(verb, `${now}; expected ${steps.join(' or ')}`);
  }

  #throwRefusal(verb: string, why: string | undefined): void {
    if (why !== undefined) throw this.#error(verb, why);
  }

  #error(verb: string, why: string): HypervisorError {
    return new HypervisorError(`Cannot ${verb} domain "${this.#parts.definition().name}": ${why}`);
  }
}
