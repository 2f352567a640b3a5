/**
 * One domain from its first process to its last word: its state and its end. The line to QEMU is qemu-link.ts; devices
 * that come and go are hotplug.ts's, its moves to other nodes and from there guest-migration.ts's.
 *
 * Its state is what QEMU says, never what we asked for. It ends in one place (#end), whoever notices first. A guest that
 * shut down is written down before QEMU quits, so that the next agent knows it too; the state changes after QEMU is gone
 * and has let go of its disks.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/learned-device.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Log } from '#lib/log.ts';
import { HypervisorError, LOG_BYTES, type Domain, type DomainInspection, type DomainState } from '../hypervisor.ts';
import { copyName, isCopyName } from './arguments/block-nodes.ts';
import type { QemuContext } from './context.ts';
import { deviceParts } from './device-parts.ts';
import { GuestDisplay } from './display.ts';
import { DiskCopies } from './disk-copies.ts';
import type { DomainDir } from './domain-dir.ts';
import { removeKey } from './door.ts';
import type { EndedState } from './domain-record.ts';
import { growDisk, readSizes } from './disk-size.ts';
import { GuestMigration } from './guest-migration.ts';
import { GuestWatchdog } from './guest-watchdog.ts';
import { Hotplug } from './hotplug.ts';
import { KeptRecord, type StartedRecord } from './kept-record.ts';
import { learnGuest } from './learn.ts';
import { Lines } from './lines.ts';
import { hasGone, migrationView, stateWith } from './migration-record.ts';
import { complaintOf, endText } from './monitor.ts';
import type { OutlivingProcess } from './process.ts';
import { QemuLink } from './qemu-link.ts';
import type { QmpClient, QmpEvent } from './qmp.ts';
import { killQemu, quitOrKill } from './quit.ts';
import { fileReach } from './reach-file.ts';
import { PAUSED, runState, RUNNING, STATE_EVENTS, type RunState } from './run-state.ts';
import { removeTaps } from './tap.ts';

const SWTPM_MS = 1000;
const LAST_WORDS_MS = 1000;
const LOOK_AGAIN_MS = 1000;

export interface QemuDomainParts {
  readonly dir: DomainDir;
  readonly record: StartedRecord;
  readonly qemu: OutlivingProcess;
  readonly swtpm: OutlivingProcess | undefined;
  readonly context: QemuContext;
  /** Called after each change of the state. */
  readonly changed: (id: string) => void;
}

export class QemuDomain {
  readonly copies: DiskCopies;
  readonly display: GuestDisplay;
  readonly hotplug: Hotplug;
  readonly lines: Lines;
  readonly migration: GuestMigration;
  readonly #parts: QemuDomainParts;
  readonly #log: Log;
  readonly #link: QemuLink;
  readonly #kept: KeptRecord;
  /** Until QEMU said otherwise. */
  #current: DomainState;
  #destroying = false;
  #quitting: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #looksLater = false;
  #closed = false;
  readonly #watchdog = new GuestWatchdog(() => this.#tell());

  constructor(parts: QemuDomainParts) {
    this.#parts = parts;
    this.#current = stateWith(parts.record.migration, PAUSED);
    const { dir, qemu, context } = parts;
    const kept = (this.#kept = new KeptRecord(dir, parts.record));
    const { clock, user } = context;
    this.#log = context.log.child({ domain: dir.id });
    this.#link = new QemuLink({
      ...{ dir, qemu, clock, log: this.#log },
      onEvent: (event) => this.#heard(event),
      onBack: () => this.#back(),
      onGone: () => this.#died(),
    });
    const ask = <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => this.#ask(verb, work);
    const files = fileReach({ user, run: dir.run, pid: qemu.identity.pid });
    const hasEnded = () => this.#current.state === 'ended';
    this.display = new GuestDisplay({ dir, definition: () => kept.now.definition, hasEnded, ask });
    this.copies = new DiskCopies({
      ...{ clock, ask, hasEnded, bytesPerSecond: context.copyBytesPerSecond },
      pathOf: (copyId, path) => files.pathOf(copyName(copyId), path),
      forgetPath: (copyId) => files.forget(copyName(copyId)),
      failed: () => this.#goOnAfterCopy(),
      records: () => kept.now.copies ?? [],
      write: (copies) => kept.write({ copies }),
    });
    this.hotplug = new Hotplug({
      ...{ ask, parts: deviceParts({ domainId: dir.id, user, files }) },
      definition: () => kept.now.definition,
      write: (definition) => kept.write({ definition }),
      changed: () => this.#tell(),
      settleSoon: () => void this.#eventually(() => this.hotplug.settle()),
    });
    this.migration = new GuestMigration({
      ...{ clock, dir, user, files, ask, hasEnded },
      definition: () => kept.now.definition,
      record: () => kept.now.migration,
      write: (migration) => kept.write({ migration }).then(() => this.#tell()),
      assume: (migration) => kept.assume({ migration }),
      isChanging: () =>
        this.#isCopied || this.hotplug.inspection.leaving.length > 0 || this.lines.freeze.untilMs !== undefined,
      refresh: () => this.#refresh(),
      quit: () => this.destroy(),
    });
    this.lines = new Lines({
      ...{ dir, context, log: this.#log, ask, hasEnded, changed: () => this.#tell() },
      definition: () => kept.now.definition,
      frozen: () => kept.now.frozen,
      writeFrozen: (frozen) => kept.write({ frozen }).then(() => this.#tell()),
    });
  }

  get view(): Domain {
    const { definition, started, migration } = this.#record;
    const { id, name, machine, origin } = definition;
    return {
      ...{ id, name, machine, startedAtMs: started.startedAtMs, current: this.#current },
      ...(this.#current.state !== 'ended' && { pid: started.qemu.pid }),
      ...(origin !== undefined && { origin }),
      deviceEvents: this.hotplug.events,
      ...this.lines.view,
      ...this.#watchdog.view,
      ...(migration !== undefined && { migration: migrationView(migration) }),
    };
  }

  get inspection(): DomainInspection {
    const { inspection } = this.hotplug;
    return this.#current.state === 'ended' ? { ...inspection, leaving: [] } : inspection;
  }

  get workingDir(): string | undefined {
    return this.#current.state === 'ended' ? undefined : this.#parts.dir.run;
  }

  get logs(): string[] {
    return this.#current.state === 'ended' ? [] : this.#parts.dir.logs;
  }

  /** Connects to a QEMU that has just been started; its guest waits. */
  async attach(options: { timeoutMs: number; signal?: AbortSignal | undefined }): Promise<void> {
    await this.#link.connect(options);
    await this.lines.attach();
  }

  /**
   * Takes over what an earlier agent left, and says what it found: a start that was cut off before the guest ran is
   * for the caller to clear away. A QEMU that does not answer now is asked again later; until then its guest counts as
   * running, because it may well be.
   */
  async takeOver(options: { timeoutMs: number }): Promise<'domain' | 'never ran'> {
    const { qemu } = this.#parts;
    if (this.#record.ended !== undefined || !(await qemu.alive())) {
      await killQemu(qemu);
      await this.#end({ state: 'ended', how: 'crashed', message: 'QEMU ended while no agent watched it' });
      return 'domain';
    }
    try {
      await this.#link.connect(options);
      const found = await this.#refresh();
      if (found.state === 'never ran' && !this.#record.paused) return 'never ran';
      if (found.state !== 'ended') await this.#eventually(() => this.#catchUp());
    } catch (err) {
      this.#log.warn({ err }, 'QEMU does not answer; trying again');
      this.#current = stateWith(this.#record.migration, RUNNING);
      if (this.#link.qmp === undefined) this.#link.watch();
      else this.#later();
    }
    if (this.#ending === undefined) await this.lines.attachEventually();
    return 'domain';
  }

  async pause(): Promise<void> {
    await this.#ask('pause', (qmp) => qmp.execute('stop'));
    await this.#refresh();
  }

  async resume(): Promise<void> {
    await this.#ask('resume', (qmp) => qmp.execute('cont'));
    await this.#refresh();
  }

  async powerDown(): Promise<void> {
    await this.#ask('shut down', (qmp) => qmp.execute('system_powerdown'));
  }

  /** QEMU has no button for that. What a guest does with the three keys is its own setting; Linux and firmware restart. */
  async softReboot(): Promise<void> {
    const keys = ['ctrl', 'alt', 'delete'].map((data) => ({ type: 'qcode', data }));
    await this.#ask('restart', (qmp) => qmp.execute('send-key', { keys }));
  }

  async reset(): Promise<void> {
    await this.#ask('reset', (qmp) => qmp.execute('system_reset'));
  }

  async destroy(): Promise<void> {
    if (this.#current.state === 'ended') return;
    this.#destroying = true;
    await this.#quit();
    await this.#end({ state: 'ended', how: 'destroyed' });
  }

  learn(): Promise<LearnedDevice[]> {
    return this.#ask('learn', (qmp) => learnGuest(qmp, this.#record.definition));
  }

  resizeDisk(deviceId: string, bytes: number): Promise<void> {
    return this.#ask('resize', (qmp) => growDisk(qmp, deviceId, bytes));
  }

  diskSizes(): Promise<ReadonlyMap<string, number>> {
    return this.#ask('look at the disks of', (qmp) => readSizes(qmp, this.#record.definition));
  }

  openConsole(): Duplex {
    if (this.#current.state === 'ended') throw this.#cannot('open the console of', 'it has ended');
    const console = this.lines.openConsole();
    if (console === undefined) throw this.#cannot('open the console of', 'it has none');
    return console;
  }

  readLog(): Promise<Buffer> {
    return this.#parts.dir.readLogEnd('qemu.log', LOG_BYTES);
  }

  async remove(): Promise<void> {
    if (this.#current.state !== 'ended') throw this.#cannot('remove', `it is ${this.#current.state}`);
    await this.#parts.dir.remove();
  }

  /** Leaves the guest as it is. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#link.close();
    await this.#ending?.catch(() => undefined);
    this.display.close();
    await this.lines.close();
    this.#parts.qemu.letGo();
    this.#parts.swtpm?.letGo();
  }

  get #record(): StartedRecord {
    return this.#kept.now;
  }

  get #isCopied(): boolean {
    return this.#record.copies?.some(({ outcome }) => outcome === undefined) === true;
  }

  #cannot(verb: string, why: string, cause?: unknown): HypervisorError {
    const permanent = cause instanceof HypervisorError && cause.permanent;
    return new HypervisorError(`Cannot ${verb} domain "${this.#record.definition.name}": ${why}`, { cause, permanent });
  }

  async #ask<T>(verb: string, work: (qmp: QmpClient) => Promise<T>): Promise<T> {
    if (this.#current.state === 'ended') throw this.#cannot(verb, 'it has ended');
    const { qmp } = this.#link;
    if (qmp === undefined) throw this.#cannot(verb, 'QEMU cannot be reached');
    try {
      return await work(qmp);
    } catch (cause) {
      throw this.#cannot(verb, (cause as Error).message, cause);
    }
  }

  #heard({ name, data }: QmpEvent): void {
    if (STATE_EVENTS.has(name)) void this.#eventually(() => this.#refresh());
    for (const part of [this.hotplug, this.migration, this.lines, this.#watchdog]) part.heard({ name, data });
    if (name !== 'JOB_STATUS_CHANGE' || data['status'] !== 'concluded') return;
    if (isCopyName(String(data['id']))) this.#tell();
  }

  async #refresh(): Promise<RunState> {
    const said = await this.#ask('look at', async (qmp) => runState(await qmp.execute('query-status')));
    const found = stateWith(this.#record.migration, said);
    if (this.#destroying || this.#ending !== undefined) return found;
    if (found.state === 'ended') await this.#endAfter(found);
    else this.#set(found.state === 'never ran' ? PAUSED : found);
    return found;
  }

  /** What an event tells is told once: a QEMU that is too busy to answer now is asked until it does. */
  async #eventually(look: () => Promise<unknown>): Promise<void> {
    try {
      await look();
    } catch {
      this.#later();
    }
  }

  #later(): void {
    // Where QEMU cannot be reached any more, its hanging up says the rest. One look tells all that was missed.
    if (this.#closed || this.#looksLater || this.#link.qmp === undefined) return;
    this.#looksLater = true;
    this.#parts.context.clock.after(LOOK_AGAIN_MS, () => {
      this.#looksLater = false;
      void this.#eventually(() => this.#back());
    });
  }

  /** The guest is over, its QEMU not yet. */
  async #endAfter(ended: EndedState): Promise<void> {
    await this.#keep(ended);
    await this.#quit();
    await this.#end(ended);
  }

  /** A guest whose write failed with a copy waits; now that the copy is given up, the write may succeed. */
  async #goOnAfterCopy(): Promise<void> {
    const found = await this.#refresh();
    if (found.state === 'paused' && found.why === 'ioError') await this.resume();
  }

  async #back(): Promise<void> {
    const found = await this.#refresh();
    // A start that was cut off, noticed too late to clear it away: it counted as running already.
    if (found.state === 'never ran' && !this.#record.paused) await this.resume();
    // It may have ended meanwhile.
    if (this.#isCopied) this.#tell();
    if (found.state !== 'ended') await this.#eventually(() => this.#catchUp());
  }

  /** What was begun before anybody was here to end it. */
  async #catchUp(): Promise<void> {
    await this.migration.settle();
    await this.hotplug.settle();
    await this.lines.settle();
  }

  async #died(): Promise<void> {
    const { qemu, dir } = this.#parts;
    const how = this.#destroying ? 'destroyed' : 'crashed';
    const why = this.#watchdog.end ?? endText(qemu, await complaintOf(dir));
    await this.#end({ state: 'ended', how, ...(how === 'crashed' && { message: why }) });
  }

  #quit(): Promise<void> {
    this.#quitting ??= quitOrKill(this.#parts.qemu, this.#link.qmp)
      .catch((cause: unknown) => {
        throw this.#cannot('end', (cause as Error).message, cause);
      })
      .finally(() => {
        this.#quitting = undefined;
      });
    return this.#quitting;
  }

  #end(ended: EndedState): Promise<void> {
    // The next agent, or who undoes a failed start, takes it from here.
    if (this.#closed && this.#ending === undefined) return Promise.resolve();
    // Whatever ends its process: the guest is elsewhere.
    const how: EndedState = hasGone(this.#record.migration) ? { state: 'ended', how: 'migrated' } : ended;
    this.#ending ??= this.#settle(this.#record.ended ?? how);
    return this.#ending;
  }

  async #settle(ended: EndedState): Promise<void> {
    const { swtpm, dir } = this.#parts;
    this.#link.close();
    await this.lines.finish(LAST_WORDS_MS);
    if (swtpm !== undefined && !(await swtpm.gone(SWTPM_MS))) await swtpm.kill('SIGKILL');
    // Its interface may still be on its way.
    await this.hotplug.idle;
    await Promise.all([removeTaps(this.#record.definition, this.#log), removeKey(dir)]);
    await this.#keep(ended);
    this.#set(ended);
  }

  /** A full disk must not keep an ended guest among the living; the next agent finds out by itself. */
  async #keep(ended: EndedState): Promise<void> {
    if (this.#record.ended !== undefined) return;
    await this.#kept
      .write({ ended })
      .catch((err: unknown) => this.#log.error({ err }, 'cannot write down the end of a domain'));
  }

  #set(next: DomainState): void {
    const before = this.#current;
    if (before.state === 'ended' || deepEqual(before, next)) return;
    this.#current = next;
    this.#tell();
  }

  #tell(): void {
    this.#parts.changed(this.#parts.dir.id);
  }
}
