/**
 * One domain from its first process to its last word: its state and its end. The line to QEMU is qemu-link.ts; devices
 * that come and go are hotplug.ts's.
 *
 * Its state is what QEMU says, never what we asked for. It ends in one place (#end), whoever notices first. A guest that
 * shut down is written down before QEMU quits, so that the next agent knows it too; the state changes after QEMU is gone
 * and has let go of its disks.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/learned-device.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Log } from '#lib/log.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { HypervisorError, LOG_BYTES, type Domain, type DomainInspection, type DomainState } from '../hypervisor.ts';
import { copyName, isCopyName } from './arguments/block-nodes.ts';
import { boardOf } from './arguments/qemu-arguments.ts';
import { ConsoleLog, readConsoleLogFile } from './console-log.ts';
import { SerialConsole } from './console.ts';
import type { QemuContext } from './context.ts';
import { deviceParts } from './device-parts.ts';
import { DiskCopies } from './disk-copies.ts';
import { SERIAL_SOCKET, type DomainDir } from './domain-dir.ts';
import type { DomainRecord, EndedState, StartedProcesses } from './domain-record.ts';
import { growDisk } from './disk-size.ts';
import { Hotplug } from './hotplug.ts';
import { learnDevices, readDevices } from './learn.ts';
import { complaintOf, endText } from './monitor.ts';
import type { OutlivingProcess } from './process.ts';
import { QemuLink } from './qemu-link.ts';
import type { QmpClient, QmpEvent } from './qmp.ts';
import { fileReach } from './reach-file.ts';
import { PAUSED, runState, RUNNING, STATE_EVENTS, type RunState } from './run-state.ts';
import { removeTap, tapsOf } from './tap.ts';

const QUIT_ANSWER_MS = 2000;
const QUIT_MS = 10_000;
const KILL_MS = 10_000;
const SWTPM_MS = 1000;
const LAST_WORDS_MS = 1000;
const LOOK_AGAIN_MS = 1000;

export interface QemuDomainParts {
  readonly dir: DomainDir;
  readonly record: DomainRecord & { readonly started: StartedProcesses };
  readonly qemu: OutlivingProcess;
  readonly swtpm: OutlivingProcess | undefined;
  readonly context: QemuContext;
  /** Called after each change of the state. */
  readonly changed: (id: string) => void;
}

export class QemuDomain {
  readonly copies: DiskCopies;
  readonly hotplug: Hotplug;
  readonly #parts: QemuDomainParts;
  readonly #log: Log;
  readonly #link: QemuLink;
  readonly #console: SerialConsole | undefined;
  #record: QemuDomainParts['record'];
  /** Until QEMU said otherwise. */
  #current: DomainState = PAUSED;
  #destroying = false;
  #quitting: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #looksLater = false;
  #writing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(parts: QemuDomainParts) {
    this.#parts = parts;
    this.#record = parts.record;
    const { dir, qemu, context } = parts;
    const { clock } = context;
    this.#log = context.log.child({ domain: dir.id });
    this.#link = new QemuLink({
      ...{ dir, qemu, clock, log: this.#log },
      onEvent: (event) => this.#heard(event),
      onBack: () => this.#back(),
      onGone: () => this.#died(),
    });
    const ask = <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => this.#ask(verb, work);
    const { user } = context;
    const files = fileReach({ user, run: dir.run, pid: qemu.identity.pid });
    this.copies = new DiskCopies({
      ...{ clock, ask, bytesPerSecond: context.copyBytesPerSecond },
      hasEnded: () => this.#current.state === 'ended',
      pathOf: (copyId, path) => files.pathOf(copyName(copyId), path),
      forgetPath: (copyId) => files.forget(copyName(copyId)),
      failed: () => this.#goOnAfterCopy(),
      records: () => this.#record.copies ?? [],
      write: (copies) => this.#write({ copies }),
    });
    this.hotplug = new Hotplug({
      ...{ ask, parts: deviceParts({ domainId: dir.id, user, files }) },
      definition: () => this.#record.definition,
      write: (definition) => this.#write({ definition }),
      changed: () => this.#tell(),
      settleSoon: () => void this.#eventually(() => this.hotplug.settle()),
    });
    if (!parts.record.definition.devices.some(({ type }) => type === 'serial')) return;
    this.#console = new SerialConsole({
      connect: () => dir.connect(SERIAL_SOCKET),
      log: new ConsoleLog(dir.consoleLog),
      clock,
      report: this.#log,
    });
  }

  get view(): Domain {
    const { definition, started } = this.#record;
    const { id, name, machine, origin } = definition;
    return {
      ...{ id, name, machine, startedAtMs: started.startedAtMs, current: this.#current },
      ...(this.#current.state !== 'ended' && { pid: started.qemu.pid }),
      ...(origin !== undefined && { origin }),
      deviceEvents: this.hotplug.events,
    };
  }

  get inspection(): DomainInspection {
    const { inspection } = this.hotplug;
    return this.#current.state === 'ended' ? { ...inspection, leaving: [] } : inspection;
  }

  get logs(): string[] {
    return this.#current.state === 'ended' ? [] : this.#parts.dir.logs;
  }

  /** Connects to a QEMU that has just been started; its guest waits. */
  async attach(options: { timeoutMs: number; signal?: AbortSignal | undefined }): Promise<void> {
    await this.#link.connect(options);
    await this.#console?.connect();
  }

  /**
   * Takes over what an earlier agent left, and says what it found: a start that was cut off before the guest ran is
   * for the caller to clear away. A QEMU that does not answer now is asked again later; until then its guest counts as
   * running, because it may well be.
   */
  async takeOver(options: { timeoutMs: number }): Promise<'domain' | 'never ran'> {
    const { qemu } = this.#parts;
    if (this.#record.ended !== undefined || !(await qemu.alive())) {
      await this.#killQemu();
      await this.#end({ state: 'ended', how: 'crashed', message: 'QEMU ended while no agent watched it' });
      return 'domain';
    }
    try {
      await this.#link.connect(options);
      const found = await this.#refresh();
      if (found.state === 'never ran' && !this.#record.paused) return 'never ran';
      if (found.state !== 'ended') await this.#eventually(() => this.hotplug.settle());
    } catch (err) {
      this.#log.warn({ err }, 'QEMU does not answer; trying again');
      this.#current = RUNNING;
      if (this.#link.qmp === undefined) this.#link.watch();
      else this.#later();
    }
    if (this.#ending === undefined) await this.#console?.connectEventually();
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
    return this.#ask('learn', async (qmp) => {
      const found = await readDevices(qmp);
      const { definition } = this.#record;
      return learnDevices(learnedFrom(definition), found, boardOf(definition));
    });
  }

  resizeDisk(deviceId: string, bytes: number): Promise<void> {
    return this.#ask('resize', (qmp) => growDisk(qmp, deviceId, bytes));
  }

  openConsole(): Duplex {
    if (this.#console === undefined) throw this.#cannot('open the console of', 'it has none');
    if (this.#current.state === 'ended') throw this.#cannot('open the console of', 'it has ended');
    return this.#console.open();
  }

  readConsoleLog(): Promise<Buffer> {
    return readConsoleLogFile(this.#parts.dir.consoleLog);
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
    await this.#console?.close();
    this.#parts.qemu.letGo();
    this.#parts.swtpm?.letGo();
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
    this.hotplug.heard({ name, data });
    if (name !== 'JOB_STATUS_CHANGE' || data['status'] !== 'concluded') return;
    if (isCopyName(String(data['id']))) this.#tell();
  }

  async #refresh(): Promise<RunState> {
    const found = await this.#ask('look at', async (qmp) => runState(await qmp.execute('query-status')));
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
    const mayHaveEnded = this.#record.copies?.some(({ outcome }) => outcome === undefined) === true;
    if (mayHaveEnded) this.#tell();
    if (found.state !== 'ended') await this.#eventually(() => this.hotplug.settle());
  }

  async #died(): Promise<void> {
    const { qemu, dir } = this.#parts;
    const how = this.#destroying ? 'destroyed' : 'crashed';
    const message = how === 'crashed' ? { message: endText(qemu, await complaintOf(dir)) } : {};
    await this.#end({ state: 'ended', how, ...message });
  }

  /** Rather than with a signal: it writes out what its disks have in memory. */
  #quit(): Promise<void> {
    this.#quitting ??= this.#quitOrKill().finally(() => {
      this.#quitting = undefined;
    });
    return this.#quitting;
  }

  async #quitOrKill(): Promise<void> {
    const { qemu } = this.#parts;
    const asked = this.#link.qmp?.execute('quit', undefined, { timeoutMs: QUIT_ANSWER_MS });
    // It may hang up before it answers.
    await asked?.catch(() => undefined);
    if (asked !== undefined && (await qemu.gone(QUIT_MS))) return;
    await this.#killQemu();
  }

  async #killQemu(): Promise<void> {
    const { qemu } = this.#parts;
    await qemu.kill('SIGKILL');
    if (!(await qemu.gone(KILL_MS))) throw this.#cannot('end', `process ${qemu.identity.pid} does not die`);
  }

  #end(ended: EndedState): Promise<void> {
    // The next agent, or who undoes a failed start, takes it from here.
    if (this.#closed && this.#ending === undefined) return Promise.resolve();
    this.#ending ??= this.#settle(this.#record.ended ?? ended);
    return this.#ending;
  }

  async #settle(ended: EndedState): Promise<void> {
    const { swtpm } = this.#parts;
    this.#link.close();
    await this.#console?.finish(LAST_WORDS_MS);
    if (swtpm !== undefined && !(await swtpm.gone(SWTPM_MS))) await swtpm.kill('SIGKILL');
    // Its interface may still be on its way.
    await this.hotplug.idle;
    for (const { name } of tapsOf(this.#record.definition)) {
      await removeTap(name).catch((err: unknown) => this.#log.warn({ err }, 'cannot remove a tap device'));
    }
    await this.#keep(ended);
    this.#set(ended);
  }

  /** A full disk must not keep an ended guest among the living; the next agent finds out by itself. */
  async #keep(ended: EndedState): Promise<void> {
    if (this.#record.ended !== undefined) return;
    await this.#write({ ended }).catch((err: unknown) =>
      this.#log.error({ err }, 'cannot write down the end of a domain'),
    );
  }

  /** One after the other, each time all of it: whatever the order, nothing is lost. */
  #write(change: Partial<Pick<DomainRecord, 'ended' | 'copies' | 'definition'>>): Promise<void> {
    this.#record = { ...this.#record, ...change };
    const written = this.#writing.then(() => this.#parts.dir.writeRecord(this.#record, { durable: true }));
    this.#writing = written.catch(() => undefined);
    return written;
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
