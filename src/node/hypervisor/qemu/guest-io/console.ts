/**
 * The serial console of one domain: QEMU accepts a single connection, which all viewers share. Output is written to the
 * log before it is shown, so that the log contains everything a viewer saw.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { ConsoleLog } from '#node/hypervisor/qemu/guest-io/console-log.ts';
import { CONSOLE_LIMITS, FlowBudget } from '#node/hypervisor/qemu/guest-io/flow-budget.ts';
import { waitAtMost } from '#node/hypervisor/qemu/process/timing.ts';

const MAX_VIEWERS = 32;
/** A viewer with more unread bytes than this is disconnected; the others do not wait for it. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const RECONNECT_MS = 1000;

interface SerialConsoleOptions {
  readonly connect: () => Promise<Socket>;
  readonly consoleLog: ConsoleLog;
  readonly clock: Clock;
  readonly log: Log;
}

export class SerialConsole {
  readonly #options: SerialConsoleOptions;
  readonly #viewers = new Set<Duplex>();
  #socket: Socket | undefined;
  #reading: Promise<void> = Promise.resolve();
  #cancelReconnect: (() => void) | undefined;
  #endPause: (() => void) | undefined;
  #closed = false;
  #isLogFailing = false;

  constructor(options: SerialConsoleOptions) {
    this.#options = options;
  }

  /** Connects once. For a new guest this must happen before it runs, or its first output is lost. */
  async connect(): Promise<void> {
    const socket = await this.#options.connect();
    if (this.#closed) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    this.#reading = this.#read(socket);
  }

  /** Retries until connected or closed; for guests that run already. */
  async connectWithRetry(): Promise<void> {
    await this.connect().catch(() => this.#scheduleReconnect());
  }

  open(): Duplex {
    if (this.#closed) throw new HypervisorError('the console is closed');
    if (this.#viewers.size >= MAX_VIEWERS)
      throw new HypervisorError(`${MAX_VIEWERS} consoles are open already; close one of them`);
    const viewer = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => this.#sendInput(chunk, done),
    });
    this.#viewers.add(viewer);
    viewer.once('close', () => this.#viewers.delete(viewer));
    return viewer;
  }

  /** Called after the guest has ended: waits for its last output, then disconnects all viewers. */
  async finish(timeoutMs: number): Promise<void> {
    this.#closed = true;
    this.#cancelReconnect?.();
    this.#endPause?.();
    await waitAtMost(this.#options.clock, timeoutMs, this.#reading);
    await this.#disconnect();
  }

  /** Closes the connection; the guest keeps running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelReconnect?.();
    this.#endPause?.();
    await this.#disconnect();
  }

  async #disconnect(): Promise<void> {
    this.#socket?.destroy();
    await this.#reading;
    for (const viewer of this.#viewers) {
      viewer.push(null);
      viewer.end();
    }
    await this.#options.consoleLog.close().catch(() => undefined);
  }

  /**
   * Reads one chunk at a time, within a budget, so that a guest with much output is slowed down by the socket instead of
   * filling our memory or using our CPU.
   */
  async #read(socket: Socket): Promise<void> {
    try {
      const budget = new FlowBudget(CONSOLE_LIMITS, this.#options.clock.elapsed());
      for await (const chunk of socket) {
        await this.#writeLog(chunk as Buffer);
        this.#broadcast(chunk as Buffer);
        const waitMs = budget.take((chunk as Buffer).length, this.#options.clock.elapsed());
        if (waitMs > 0 && !this.#closed) await this.#pause(waitMs);
      }
    } catch {
      // Either side closed the connection; both cases continue below.
    }
    this.#socket = undefined;
    if (!this.#closed) this.#scheduleReconnect();
  }

  /** Reads nothing for this time, or until the console is closed. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  async #writeLog(chunk: Buffer): Promise<void> {
    try {
      await this.#options.consoleLog.append(chunk);
      this.#isLogFailing = false;
    } catch (err) {
      // A full disk must not take the console away from its users.
      if (!this.#isLogFailing) this.#options.log.warn({ err }, 'Cannot write the console log');
      this.#isLogFailing = true;
    }
  }

  #broadcast(chunk: Buffer): void {
    for (const viewer of this.#viewers) {
      if (viewer.destroyed) continue;
      viewer.push(chunk);
      if (viewer.readableLength > MAX_UNREAD_BYTES) {
        viewer.destroy(
          new HypervisorError(`the console was closed: more than ${MAX_UNREAD_BYTES} bytes were not read`),
        );
      }
    }
  }

  #sendInput(chunk: Buffer, done: (error?: Error | null) => void): void {
    if (this.#socket === undefined) done(new HypervisorError('the console is not connected to the guest'));
    else this.#socket.write(chunk, done);
  }

  #scheduleReconnect(): void {
    if (this.#closed) return;
    this.#cancelReconnect = this.#options.clock.after(RECONNECT_MS, () => {
      void this.connectWithRetry();
    });
  }
}
