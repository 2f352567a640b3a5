/**
 * One domain from its start to its end. See also qemu-connection.ts, hotplug.ts and guest-migration.ts.
 *
 * The state is what QEMU reports, never what was requested. All ends go through #end, whichever event is noticed first.
 * A shutdown of the guest is recorded before QEMU quits, so that the next node agent knows it; the state changes after
 * QEMU has exited and released its disks.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Log } from '#lib/log.ts';
import {
  HypervisorError,
  LOG_BYTES,
  type DomainInfo,
  type DomainInspection,
  type DomainState,
} from '#node/hypervisor/hypervisor.ts';
import { copyName, isCopyName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import type { QemuContext } from '#node/hypervisor/qemu/process/context.ts';
import { deviceParts } from '#node/hypervisor/qemu/devices/device-parts.ts';
import { GuestDisplay } from '#node/hypervisor/qemu/guest-io/display.ts';
import { DiskCopies } from '#node/hypervisor/qemu/disks/disk-copies.ts';
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { removeKeyFiles } from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import type { EndedState } from '#node/hypervisor/qemu/record/domain-record.ts';
import { readFailedDisks } from '#node/hypervisor/qemu/disks/failed-disks.ts';
import { growDisk, readDiskSizes } from '#node/hypervisor/qemu/disks/disk-size.ts';
import { GuestMigration } from '#node/hypervisor/qemu/migration/guest-migration.ts';
import { GuestWatchdog } from '#node/hypervisor/qemu/guest-io/guest-watchdog.ts';
import { Hotplug } from '#node/hypervisor/qemu/devices/hotplug.ts';
import { RecordStore, type StartedRecord } from '#node/hypervisor/qemu/record/record-store.ts';
import { learnGuest } from '#node/hypervisor/qemu/devices/learn.ts';
import { GuestChannels } from '#node/hypervisor/qemu/guest-io/guest-channels.ts';
import { hasMigratedAway, migrationView, combineStates } from '#node/hypervisor/qemu/migration/migration-record.ts';
import { readQemuError, qemuExitText } from '#node/hypervisor/qemu/monitor/monitor.ts';
import type { DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { QemuConnection } from '#node/hypervisor/qemu/monitor/qemu-connection.ts';
import { asText, type QmpClient, type QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { killQemu, quitOrKill } from '#node/hypervisor/qemu/monitor/quit.ts';
import { linkAccess, ownUserAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { SHARED_DISKS_GID } from '#node/hardware/guest-user.ts';
import {
  PAUSED,
  parseRunState,
  RUNNING,
  STATE_EVENTS,
  type QemuRunState,
} from '#node/hypervisor/qemu/monitor/run-state.ts';
import { removeTaps } from '#node/hypervisor/qemu/process/tap.ts';

const SWTPM_MS = 1000;
const LAST_OUTPUT_MS = 1000;
const REFRESH_RETRY_MS = 1000;

interface QemuDomainParts {
  readonly dir: DomainDir;
  readonly record: StartedRecord;
  readonly qemu: DetachedProcess;
  readonly swtpm: DetachedProcess | undefined;
  readonly context: QemuContext;
  /** Called after each change of the state. */
  readonly onChange: (id: string) => void;
}

export class QemuDomain {
  readonly copies: DiskCopies;
  readonly display: GuestDisplay;
  readonly hotplug: Hotplug;
  readonly channels: GuestChannels;
  readonly migration: GuestMigration;
  readonly #parts: QemuDomainParts;
  readonly #log: Log;
  readonly #connection: QemuConnection;
  readonly #store: RecordStore;
  /** An assumption until QEMU reports the state. */
  #current: DomainState;
  #destroying = false;
  #quitting: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #isRefreshScheduled = false;
  #closed = false;
  readonly #watchdog = new GuestWatchdog(() => this.#notify());

  constructor(parts: QemuDomainParts) {
    this.#parts = parts;
    this.#current = combineStates(parts.record.migration, PAUSED);
    const { dir, qemu, context } = parts;
    const store = (this.#store = new RecordStore(dir, parts.record));
    const { clock } = context;
    const { user, files } = accessOf(parts);
    this.#log = context.log.child({ domain: dir.id });
    this.#connection = new QemuConnection({
      ...{ dir, qemu, clock, log: this.#log },
      onEvent: (event) => this.#onEvent(event),
      onReconnect: () => this.#resynchronize(),
      onExit: () => this.#onExit(),
    });
    const withQmp = <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => this.#withQmp(verb, work);
    const hasEnded = () => this.#current.state === 'ended';
    this.display = new GuestDisplay({ dir, definition: () => store.current.definition, hasEnded, withQmp });
    this.copies = new DiskCopies({
      ...{ clock, withQmp, hasEnded, bytesPerSecond: context.copyBytesPerSecond },
      pathOf: (copyId, path) => files.pathOf(copyName(copyId), path, { isReadOnly: false }),
      releasePath: (copyId) => files.release(copyName(copyId)),
      onFailure: () => this.#resumeAfterCopy(),
      records: () => store.current.copies ?? [],
      write: (copies) => store.write({ copies }),
    });
    this.hotplug = new Hotplug({
      ...{ withQmp, parts: deviceParts({ domainId: dir.id, user, files }) },
      definition: () => store.current.definition,
      write: (definition) => store.write({ definition }),
      onChange: () => this.#notify(),
      reconcileSoon: () => void this.#withRetry(() => this.hotplug.reconcile()),
    });
    this.migration = new GuestMigration({
      ...{ clock, dir, user, files, withQmp, hasEnded },
      definition: () => store.current.definition,
      record: () => store.current.migration,
      write: (migration) => store.write({ migration }).then(() => this.#notify()),
      setInMemory: (migration) => store.setInMemory({ migration }),
      isChanging: () =>
        this.#isBeingCopied ||
        this.hotplug.inspection.unplugging.length > 0 ||
        this.channels.freeze.untilMs !== undefined,
      refresh: () => this.#refresh(),
      quit: () => this.destroy(),
    });
    this.channels = new GuestChannels({
      ...{ dir, context, log: this.#log, withQmp, hasEnded, onChange: () => this.#notify() },
      definition: () => store.current.definition,
      frozen: () => store.current.frozen,
      writeFrozen: (frozen) => store.write({ frozen }).then(() => this.#notify()),
    });
  }

  get view(): DomainInfo {
    const { definition, started, migration } = this.#record;
    const { id, name, machine, origin } = definition;
    return {
      ...{ id, name, machine, startedAtMs: started.startedAtMs, current: this.#current },
      ...(this.#current.state !== 'ended' && { pid: started.qemu.pid }),
      ...(origin !== undefined && { origin }),
      deviceEvents: this.hotplug.events,
      ...this.channels.view,
      ...this.#watchdog.view,
      ...(migration !== undefined && { migration: migrationView(migration) }),
    };
  }

  get inspection(): DomainInspection {
    const { inspection } = this.hotplug;
    return this.#current.state === 'ended' ? { ...inspection, unplugging: [] } : inspection;
  }

  get workingDir(): string | undefined {
    return this.#current.state === 'ended' ? undefined : this.#parts.dir.run;
  }

  get logs(): string[] {
    return this.#current.state === 'ended' ? [] : this.#parts.dir.logs;
  }

  /** Connects to a QEMU that has just been started and whose guest does not run yet. */
  async connect(options: { timeoutMs: number; signal?: AbortSignal | undefined }): Promise<void> {
    await this.#connection.connect(options);
    await this.channels.connect();
  }

  /**
   * Adopts a domain of an earlier node agent. Returns 'never ran' for a start that was interrupted before the guest
   * ran, which the caller removes. A QEMU that does not answer now is asked again later; until then its guest counts as
   * running, because it probably is.
   */
  async adopt(options: { timeoutMs: number }): Promise<'domain' | 'never ran'> {
    const { qemu } = this.#parts;
    if (this.#record.ended !== undefined || !(await qemu.isAlive())) {
      await killQemu(qemu);
      const reason = await this.#describeKill();
      const message = `QEMU ended while no node agent was running${reason === undefined ? '' : `: ${reason}`}`;
      await this.#end({ state: 'ended', how: 'crashed', message });
      return 'domain';
    }
    try {
      await this.#connection.connect(options);
      const runState = await this.#refresh();
      if (runState.state === 'never ran' && !this.#record.paused) return 'never ran';
      if (runState.state !== 'ended') await this.#withRetry(() => this.#reconcile());
    } catch (err) {
      this.#log.warn({ err }, 'QEMU does not answer; retrying');
      this.#current = combineStates(this.#record.migration, RUNNING);
      if (this.#connection.qmp === undefined) this.#connection.watch();
      else this.#scheduleRefresh();
    }
    if (this.#ending === undefined) await this.channels.connectWithRetry();
    return 'domain';
  }

  async pause(): Promise<void> {
    await this.#withQmp('pause', (qmp) => qmp.execute('stop'));
    await this.#refresh();
  }

  async resume(): Promise<void> {
    await this.#withQmp('resume', (qmp) => qmp.execute('cont'));
    await this.#refresh();
  }

  async powerDown(): Promise<void> {
    await this.#withQmp('shut down', (qmp) => qmp.execute('system_powerdown'));
  }

  /** Sends Ctrl+Alt+Delete, because QEMU has no restart button. Linux and firmware restart by default. */
  async softReboot(): Promise<void> {
    const keys = ['ctrl', 'alt', 'delete'].map((data) => ({ type: 'qcode', data }));
    await this.#withQmp('restart', (qmp) => qmp.execute('send-key', { keys }));
  }

  async reset(): Promise<void> {
    await this.#withQmp('reset', (qmp) => qmp.execute('system_reset'));
  }

  async destroy(): Promise<void> {
    if (this.#current.state === 'ended') return;
    this.#destroying = true;
    await this.#quit();
    await this.#end({ state: 'ended', how: 'destroyed' });
  }

  learn(): Promise<LearnedDevice[]> {
    return this.#withQmp('learn the devices of', (qmp) => learnGuest(qmp, this.#record.definition));
  }

  resizeDisk(deviceId: string, bytes: number): Promise<void> {
    return this.#withQmp('resize a disk of', (qmp) => growDisk(qmp, deviceId, bytes));
  }

  diskSizes(): Promise<ReadonlyMap<string, number>> {
    return this.#withQmp('read the disk sizes of', (qmp) => readDiskSizes(qmp, this.#record.definition));
  }

  openConsole(): Duplex {
    if (this.#current.state === 'ended') throw this.#error('open the console of', 'the guest has ended');
    const console = this.channels.openConsole();
    if (console === undefined) throw this.#error('open the console of', 'the guest has no serial console');
    return console;
  }

  readLog(): Promise<Buffer> {
    return this.#parts.dir.readLogEnd('qemu.log', LOG_BYTES);
  }

  async remove(): Promise<void> {
    if (this.#current.state !== 'ended') throw this.#error('remove', `the guest is ${this.#current.state}`);
    await this.#parts.dir.remove();
  }

  /** Releases all resources of this process; the guest keeps running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#connection.close();
    this.migration.close();
    await this.#ending?.catch(() => undefined);
    this.display.close();
    await this.channels.close();
    this.#parts.qemu.unref();
    this.#parts.swtpm?.unref();
  }

  get #record(): StartedRecord {
    return this.#store.current;
  }

  get #isBeingCopied(): boolean {
    return this.#record.copies?.some(({ outcome }) => outcome === undefined) === true;
  }

  #error(verb: string, why: string, cause?: unknown): HypervisorError {
    const { permanent = false, disk } = cause instanceof HypervisorError ? cause : {};
    const message = `Cannot ${verb} domain "${this.#record.definition.name}": ${why}`;
    return new HypervisorError(message, { cause, permanent, disk });
  }

  async #withQmp<T>(verb: string, work: (qmp: QmpClient) => Promise<T>): Promise<T> {
    if (this.#current.state === 'ended') throw this.#error(verb, 'the guest has ended');
    const { qmp } = this.#connection;
    if (qmp === undefined) throw this.#error(verb, 'QEMU does not answer; it is asked again automatically');
    try {
      return await work(qmp);
    } catch (cause) {
      throw this.#error(verb, (cause as Error).message, cause);
    }
  }

  #onEvent({ name, data }: QmpEvent): void {
    if (STATE_EVENTS.has(name)) void this.#withRetry(() => this.#refresh());
    for (const part of [this.hotplug, this.migration, this.channels, this.#watchdog]) part.onEvent({ name, data });
    if (name !== 'JOB_STATUS_CHANGE' || data['status'] !== 'concluded') return;
    if (isCopyName(asText(data['id']))) this.#notify();
  }

  async #refresh(): Promise<QemuRunState> {
    const answer = await this.#withQmp('read the state of', (qmp) => qmp.execute('query-status'));
    const runState = await this.#withFailedDisks(combineStates(this.#record.migration, parseRunState(answer)));
    if (this.#destroying || this.#ending !== undefined) return runState;
    if (runState.state === 'ended') await this.#endGuest(runState);
    else this.#setState(runState.state === 'never ran' ? PAUSED : runState);
    return runState;
  }

  /** Adds the disks whose errors have paused the guest. Without an answer the state is reported without them. */
  async #withFailedDisks<T extends QemuRunState>(found: T): Promise<T | DomainState> {
    if (found.state !== 'paused' || found.why !== 'ioError') return found;
    const read = (qmp: QmpClient) => readFailedDisks(qmp, this.#record.definition);
    const failedDisks = await this.#withQmp('read the disk errors of', read).catch(() => []);
    return failedDisks.length === 0 ? found : { ...found, failedDisks };
  }

  /** Retries after a failure: an event comes only once, and QEMU may be too busy to answer now. */
  async #withRetry(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch {
      this.#scheduleRefresh();
    }
  }

  #scheduleRefresh(): void {
    // Without a connection, reconnecting refreshes everything. One refresh covers all missed events.
    if (this.#closed || this.#isRefreshScheduled || this.#connection.qmp === undefined) return;
    this.#isRefreshScheduled = true;
    this.#parts.context.clock.after(REFRESH_RETRY_MS, () => {
      this.#isRefreshScheduled = false;
      void this.#withRetry(() => this.#resynchronize());
    });
  }

  /** Ends a domain whose guest has ended but whose QEMU still runs. */
  async #endGuest(ended: EndedState): Promise<void> {
    await this.#recordEnd(ended);
    await this.#quit();
    await this.#end(ended);
  }

  /** Resumes a guest whose write failed because of a copy; without the copy the write may succeed. */
  async #resumeAfterCopy(): Promise<void> {
    const runState = await this.#refresh();
    if (runState.state === 'paused' && runState.why === 'ioError') await this.resume();
  }

  async #resynchronize(): Promise<void> {
    const runState = await this.#refresh();
    // An interrupted start that was noticed too late to be removed: it already counted as running.
    if (runState.state === 'never ran' && !this.#record.paused) await this.resume();
    // A copy may have ended meanwhile.
    if (this.#isBeingCopied) this.#notify();
    if (runState.state !== 'ended') await this.#withRetry(() => this.#reconcile());
  }

  /** Completes what an earlier process began. */
  async #reconcile(): Promise<void> {
    await this.migration.reconcile();
    await this.hotplug.reconcile();
    await this.channels.reconcile();
  }

  async #onExit(): Promise<void> {
    const { qemu, dir } = this.#parts;
    const how = this.#destroying ? 'destroyed' : 'crashed';
    const reason = (await this.#describeKill()) ?? (await readQemuError(dir));
    const why = this.#watchdog.endMessage ?? qemuExitText(qemu, reason);
    await this.#end({ state: 'ended', how, ...(how === 'crashed' && { message: why }) });
  }

  async #describeKill(): Promise<string | undefined> {
    return await this.#parts.context.sandboxes?.describeKill(this.#parts.dir.id);
  }

  #quit(): Promise<void> {
    this.#quitting ??= quitOrKill(this.#parts.qemu, this.#connection.qmp)
      .catch((cause: unknown) => {
        throw this.#error('stop', (cause as Error).message, cause);
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
    const how: EndedState = hasMigratedAway(this.#record.migration) ? { state: 'ended', how: 'migrated' } : ended;
    this.#ending ??= this.#cleanUp(this.#record.ended ?? how);
    return this.#ending;
  }

  async #cleanUp(ended: EndedState): Promise<void> {
    const { swtpm, dir } = this.#parts;
    this.#connection.close();
    this.migration.close();
    await this.channels.finish(LAST_OUTPUT_MS);
    if (swtpm !== undefined && !(await swtpm.waitForExit(SWTPM_MS))) await swtpm.kill('SIGKILL');
    // A hotplug of an interface may still be running.
    await this.hotplug.idle;
    await Promise.all([removeTaps(this.#record.definition, this.#log), removeKeyFiles(dir), this.#removeSandbox()]);
    await this.#recordEnd(ended);
    this.#setState(ended);
  }

  async #removeSandbox(): Promise<void> {
    const { dir, context, record } = this.#parts;
    if (record.sandboxed !== true) return;
    await context.sandboxes
      ?.remove(dir.id)
      .catch((err: unknown) => this.#log.error({ err }, 'Cannot remove the sandbox of a domain that has ended'));
  }

  /** Records the end. The domain also ends if that fails, as on a full disk; the next node agent notices it by itself. */
  async #recordEnd(ended: EndedState): Promise<void> {
    if (this.#record.ended !== undefined) return;
    await this.#store
      .write({ ended })
      .catch((err: unknown) => this.#log.error({ err }, 'Cannot record the end of a domain'));
  }

  #setState(next: DomainState): void {
    if (this.#current.state === 'ended' || deepEqual(this.#current, next)) return;
    this.#current = next;
    this.#notify();
  }

  #notify(): void {
    this.#parts.onChange(this.#parts.dir.id);
  }
}

/** The user of all guests of versions without sandboxes. */
const EARLIER_USER = { uid: SHARED_DISKS_GID, gid: SHARED_DISKS_GID };

/** Returns the user of the guest's processes, if it is not our own, and how they get access to more files. */
function accessOf({ dir, record, context: { sandboxes } }: QemuDomainParts) {
  if (sandboxes === undefined) return { user: undefined, files: ownUserAccess };
  const user = sandboxes.userOf(dir.id);
  if (record.sandboxed === true) return { user, files: sandboxes.accessOf(dir.id) };
  const files = linkAccess({ user: EARLIER_USER, run: dir.run, targetUid: user.uid });
  return { user: EARLIER_USER, files };
}
