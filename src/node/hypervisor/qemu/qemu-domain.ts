/**
 * One domain from its start to its end, and its state. The connection to QEMU is in qemu-connection.ts, hotplug in
 * hotplug.ts, migration in guest-migration.ts.
 *
 * The state is what QEMU reports, never what was requested. All ends go through #end, whichever event is noticed first.
 * A shutdown of the guest is recorded before QEMU quits, so that the next node agent knows it; the state changes after
 * QEMU has exited and released its disks.
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
  /** An assumption until QEMU reports the state. */
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

  /** Connects to a QEMU that has just been started and whose guest does not run yet. */
  async attach(options: { timeoutMs: number; signal?: AbortSignal | undefined }): Promise<void> {
    await this.#link.connect(options);
    await this.lines.attach();
  }

  /**
   * Adopts a domain of an earlier node agent. Returns 'never ran' for a start that was interrupted before the guest
   * ran, which the caller removes. A QEMU that does not answer now is asked again later; until then its guest counts as
   * running, because it probably is.
   */
  async takeOver(options: { timeoutMs: number }): Promise<'domain' | 'never ran'> {
    const { qemu } = this.#parts;
    if (this.#record.ended !== undefined || !(await qemu.alive())) {
      await killQemu(qemu);
      await this.#end({ state: 'ended', how: 'crashed', message: 'QEMU ended while no node agent was running' });
      return 'domain';
    }
    try {
      await this.#link.connect(options);
      const found = await this.#refresh();
      if (found.state === 'never ran' && !this.#record.paused) return 'never ran';
      if (found.state !== 'ended') await this.#eventually(() => this.#catchUp());
    } catch (err) {
      this.#log.warn({ err }, 'QEMU does not answer; retrying');
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

  /**
   * Sends Ctrl+Alt+Delete, because QEMU has no restart button. Linux and firmware restart by default; other guests may
   * differ.
   */
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
    return this.#ask('learn the devices of', (qmp) => learnGuest(qmp, this.#record.definition));
  }

  resizeDisk(deviceId: string, bytes: number): Promise<void> {
    return this.#ask('resize a disk of', (qmp) => growDisk(qmp, deviceId, bytes));
  }

  diskSizes(): Promise<ReadonlyMap<string, number>> {
    return this.#ask('read the disk sizes of', (qmp) => readSizes(qmp, this.#record.definition));
  }

  openConsole(): Duplex {
    if (this.#current.state === 'ended') throw this.#cannot('open the console of', 'the guest has ended');
    const console = this.lines.openConsole();
    if (console === undefined) throw this.#cannot('open the console of', 'the guest has no serial console');
    return console;
  }

  readLog(): Promise<Buffer> {
    return this.#parts.dir.readLogEnd('qemu.log', LOG_BYTES);
  }

  async remove(): Promise<void> {
    if (this.#current.state !== 'ended')
      throw this.#cannot('remove', `the guest is ${this.#current.state}; stop it first`);
    await this.#parts.dir.remove();
  }

  /** Releases all resources of this process; the guest keeps running. */
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
    if (this.#current.state === 'ended') throw this.#cannot(verb, 'the guest has ended');
    const { qmp } = this.#link;
    if (qmp === undefined) throw this.#cannot(verb, 'QEMU does not answer; it is asked again automatically');
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
    const said = await this.#ask('read the state of', async (qmp) => runState(await qmp.execute('query-status')));
    const found = stateWith(this.#record.migration, said);
    if (this.#destroying || this.#ending !== undefined) return found;
    if (found.state === 'ended') await this.#endAfter(found);
    else this.#set(found.state === 'never ran' ? PAUSED : found);
    return found;
  }

  /** Retries after a failure: an event comes only once, and QEMU may be too busy to answer now. */
  async #eventually(look: () => Promise<unknown>): Promise<void> {
    try {
      await look();
    } catch {
      this.#later();
    }
  }

  #later(): void {
    // Without a connection, reconnecting refreshes everything. One refresh covers all missed events.
    if (this.#closed || this.#looksLater || this.#link.qmp === undefined) return;
    this.#looksLater = true;
    this.#parts.context.clock.after(LOOK_AGAIN_MS, () => {
      this.#looksLater = false;
      void this.#eventually(() => this.#back());
    });
  }

  /** Ends a domain whose guest has ended but whose QEMU still runs. */
  async #endAfter(ended: EndedState): Promise<void> {
    await this.#keep(ended);
    await this.#quit();
    await this.#end(ended);
  }

  /**
   * Resumes a guest that was paused because its write failed together with a copy. Without the copy the write may
   * succeed.
   */
  async #goOnAfterCopy(): Promise<void> {
    const found = await this.#refresh();
    if (found.state === 'paused' && found.why === 'ioError') await this.resume();
  }

  async #back(): Promise<void> {
    const found = await this.#refresh();
    // An interrupted start that was noticed too late to be removed: it already counted as running.
    if (found.state === 'never ran' && !this.#record.paused) await this.resume();
    // A copy may have ended meanwhile.
    if (this.#isCopied) this.#tell();
    if (found.state !== 'ended') await this.#eventually(() => this.#catchUp());
  }

  /** Completes what an earlier process began. */
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
        throw this.#cannot('stop', (cause as Error).message, cause);
      })
      .finally(() => {
        this.#quitting = undefined;
      });
    return this.#quitting;
  }

  #end(ended: EndedState): Promise<void> {
    // The next node agent, or the cleanup of a failed start, takes over.
    if (this.#closed && this.#ending === undefined) return Promise.resolve();
    // However the process ends, the guest runs on the target.
    const how: EndedState = hasGone(this.#record.migration) ? { state: 'ended', how: 'migrated' } : ended;
    this.#ending ??= this.#settle(this.#record.ended ?? how);
    return this.#ending;
  }

  async #settle(ended: EndedState): Promise<void> {
    const { swtpm, dir } = this.#parts;
    this.#link.close();
    await this.lines.finish(LAST_WORDS_MS);
    if (swtpm !== undefined && !(await swtpm.gone(SWTPM_MS))) await swtpm.kill('SIGKILL');
    // A hotplug of an interface may still be running.
    await this.hotplug.idle;
    await Promise.all([removeTaps(this.#record.definition, this.#log), removeKey(dir)]);
    await this.#keep(ended);
    this.#set(ended);
  }

  /**
   * Records the end. If that fails, for example on a full disk, the domain still ends; the next node agent notices it
   * by itself.
   */
  async #keep(ended: EndedState): Promise<void> {
    if (this.#record.ended !== undefined) return;
    await this.#kept
      .write({ ended })
      .catch((err: unknown) => this.#log.error({ err }, 'cannot record the end of a domain'));
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
