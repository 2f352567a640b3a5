/**
 * One domain's part in a migration: its steps, each on disk before it counts (../migration.ts). What QEMU does about it
 * is in send.ts, take-back.ts and receive.ts.
 */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { Incoming, MigrationDoor, Outgoing, Sent, SourceStep, TargetStep } from '../migration.ts';
import { Bell } from './bell.ts';
import { readKeptNvram } from './carried-state.ts';
import {
  standsStill,
  whyAbsent,
  whyBusy,
  type MigrationRecord,
  type SourceRecord,
  type TargetRecord,
} from './migration-record.ts';
import type { QmpClient, QmpEvent } from './qmp.ts';
import { closeDoor, openDoor, storeGuest } from './receive.ts';
import { runState } from './run-state.ts';
import { forgetDoor, sendGuest, switchOver, type MovingContext, type SendOptions } from './send.ts';
import { goOn, takeBackGuest } from './take-back.ts';

const EVENTS: ReadonlySet<string> = new Set(['MIGRATION', 'JOB_STATUS_CHANGE', 'BLOCK_JOB_READY', 'STOP']);

const NOT_SINCE =
  'it is paused since an earlier migration was given up, and can be sent again only after it has gone on';

export interface GuestMigrationParts extends Omit<MovingContext, 'bell'> {
  readonly definition: () => DomainDefinition;
  readonly record: () => MigrationRecord | undefined;
  /** It is on disk when it resolves. */
  readonly write: (record: MigrationRecord) => Promise<void>;
  /** As write, but in memory only. */
  readonly assume: (record: MigrationRecord) => void;
  /** Rejects where QEMU cannot be asked, or refuses. */
  readonly ask: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
  readonly hasEnded: () => boolean;
  /** Its disks are being copied, or a device is being unplugged. */
  readonly isChanging: () => boolean;
  /** Looks at QEMU once more: its state may be another. */
  readonly refresh: () => Promise<unknown>;
  /** Ends QEMU, for a guest that lives on elsewhere. */
  readonly quit: () => Promise<void>;
}

export class GuestMigration {
  readonly #parts: GuestMigrationParts;
  readonly #context: MovingContext;
  /** All was sent, by this process: whoever finds a guest so cannot know what the other side has. */
  #hasSent = false;
  /** Nobody knows whether `migrated` is on disk. */
  #inDoubt = false;

  constructor(parts: GuestMigrationParts) {
    this.#parts = parts;
    const { clock, dir, user, files } = parts;
    this.#context = { clock, dir, user, files, bell: new Bell() };
  }

  heard({ name }: QmpEvent): void {
    if (EVENTS.has(name)) this.#context.bell.ring();
  }

  /** Throws while it moves, or is not here: nothing about it may change then. */
  checkSettled(verb: string): void {
    this.#unless(verb, whyBusy(this.#parts.record()));
  }

  /** Throws while it is not here. */
  checkPresent(verb: string): void {
    this.#unless(verb, whyAbsent(this.#parts.record()));
  }

  async send(outgoing: Outgoing, options: SendOptions): Promise<void> {
    options.signal.throwIfAborted();
    this.#hasSent = false;
    const { ask, write, refresh, dir, record, isChanging } = this.#parts;
    const { uid, peer, disks, door } = outgoing;
    await ask('send', async (qmp) => {
      const why = whyBusy(record()) ?? (isChanging() ? 'its disks are being copied, or a device unplugged' : undefined);
      if (why !== undefined) throw new HypervisorError(why);
      const found = runState(await qmp.execute('query-status'));
      // QEMU would refuse in words that help nobody.
      if (standsStill(found)) throw new HypervisorError(NOT_SINCE);
      await write({ uid, peer, disks, role: 'source', step: 'sending', goesOn: found.state === 'running' });
      try {
        await sendGuest(qmp, this.#context, outgoing, options);
      } finally {
        // Whoever is connected stays so.
        await forgetDoor(dir, [door.memory, door.disks]).catch(() => undefined);
      }
    });
    await refresh();
  }

  async switchOver(): Promise<Sent> {
    const { disks } = this.#source('send the last of', ['sending']);
    return this.#parts.ask('send the last of', async (qmp) => {
      await switchOver(qmp, this.#context, disks);
      this.#hasSent = true;
      const nvram = await readKeptNvram(this.#parts.definition());
      return nvram === undefined ? {} : { nvram };
    });
  }

  async recordMigrated(): Promise<void> {
    const record = this.#source('give away', ['sending', 'migrated']);
    if (record.step === 'migrated') return;
    if (!this.#hasSent) throw this.#cannot('give away', 'not all of it was sent');
    this.#inDoubt = true;
    await this.#write(record, { ...record, step: 'migrated' });
    this.#inDoubt = false;
  }

  async leave(): Promise<void> {
    const record = this.#source('leave', ['migrated', 'left']);
    await this.#parts.quit();
    if (record.step !== 'left') await this.#write(record, { ...record, step: 'left' });
  }

  async takeBack(): Promise<void> {
    const { ask, hasEnded, refresh } = this.#parts;
    if (this.#parts.record()?.role !== 'source') return;
    const record = this.#source('take back', ['sending', 'aborted']);
    this.#hasSent = false;
    // Should the other step be on disk, somebody would take it for the outcome: the guest must not run before.
    const aborted: SourceRecord = { ...record, step: 'aborted' };
    if (this.#inDoubt) await this.#write(record, aborted);
    this.#inDoubt = false;
    if (!hasEnded()) {
      await ask('take back', (qmp) => takeBackGuest(qmp, this.#context, record));
    }
    if (this.#parts.record()?.step !== 'aborted') await this.#write(record, aborted);
    if (!hasEnded()) await refresh();
  }

  /** For a QEMU that waits: the record is on disk already. */
  open(incoming: Incoming): Promise<MigrationDoor> {
    return this.#parts.ask('receive', (qmp) => openDoor(qmp, this.#context, this.#parts.definition(), incoming));
  }

  async store(sent: Sent, { signal }: { signal?: AbortSignal }): Promise<void> {
    const record = this.#target('store', ['waiting', 'stored']);
    if (record.step === 'stored') return;
    await this.#parts.ask('store', async (qmp) => {
      await storeGuest(qmp, this.#context, this.#parts.definition(), record.disks, { ...sent, signal });
      await this.#write(record, { ...record, step: 'stored' });
    });
  }

  async commit(): Promise<void> {
    const record = this.#target('commit', ['stored', 'committed', 'arrived']);
    if (record.step === 'arrived') return;
    const committed: TargetRecord = { ...record, step: 'committed' };
    if (record.step !== 'committed') await this.#write(record, committed);
    await this.#parts.ask('commit', async (qmp) => {
      if (record.goesOn) await this.#goOnHere(qmp);
      // Not before: it has no hurry, and a guest that stands still has.
      await closeDoor(qmp, this.#context).catch(() => undefined);
    });
    await this.#write(committed, { ...committed, step: 'arrived' });
    await this.#parts.refresh();
  }

  /** What an agent was about to do when it was cut off, and what nobody may keep from happening any more. */
  async settle(): Promise<void> {
    const record = this.#parts.record();
    if (record?.step === 'committed') await this.commit();
    if (record?.step !== 'aborted' || !record.goesOn) return;
    await this.#parts.ask('take back', goOn);
    await this.#parts.refresh();
  }

  async #goOnHere(qmp: QmpClient): Promise<void> {
    try {
      await qmp.execute('cont');
    } catch (error) {
      // It may have shut down in its last moment there: then that is what has come.
      await this.#parts.refresh().catch(() => undefined);
      throw error;
    }
  }

  /** A step that cannot be written down is not taken. */
  async #write(before: MigrationRecord, next: MigrationRecord): Promise<void> {
    try {
      await this.#parts.write(next);
    } catch (error) {
      this.#parts.assume(before);
      throw error;
    }
  }

  #source(verb: string, steps: readonly SourceStep[]): SourceRecord {
    const record = this.#parts.record();
    if (record?.role === 'source' && steps.includes(record.step)) return record;
    throw this.#outOfTurn(verb, steps);
  }

  #target(verb: string, steps: readonly TargetStep[]): TargetRecord {
    const record = this.#parts.record();
    if (record?.role === 'target' && steps.includes(record.step)) return record;
    throw this.#outOfTurn(verb, steps);
  }

  #outOfTurn(verb: string, steps: readonly string[]): HypervisorError {
    const record = this.#parts.record();
    const now = record === undefined ? 'it does not migrate' : `it is ${record.step}, as ${record.role}`;
    return this.#cannot(verb, `${now}; expected ${steps.join(' or ')}`);
  }

  #unless(verb: string, why: string | undefined): void {
    if (why !== undefined) throw this.#cannot(verb, why);
  }

  #cannot(verb: string, why: string): HypervisorError {
    return new HypervisorError(`Cannot ${verb} domain "${this.#parts.definition().name}": ${why}`);
  }
}
