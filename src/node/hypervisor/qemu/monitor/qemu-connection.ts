/**
 * The connection to one QEMU, kept up as long as its process lives.
 *
 *   open ──QEMU closes it──► has the process exited? ── yes ─► onExit
 *    ▲                             │ no
 *    └──────── reconnect ◄─────────┘
 */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { openMonitor } from '#node/hypervisor/qemu/monitor/monitor.ts';
import type { DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import type { QmpClient, QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';

const EXIT_MS = 3000;
const RECONNECT_MS = 1000;
const RECONNECT_TIMEOUT_MS = 10_000;

interface QemuConnectionOptions {
  readonly dir: DomainDir;
  readonly qemu: DetachedProcess;
  readonly clock: Clock;
  readonly log: Log;
  readonly onEvent: (event: QmpEvent) => void;
  /** Called after a reconnect; events may have been missed. */
  readonly onReconnect: () => Promise<void>;
  /** Called after the process has exited. */
  readonly onExit: () => Promise<void>;
}

export class QemuConnection {
  readonly #options: QemuConnectionOptions;
  #qmp: QmpClient | undefined;
  #closed = false;
  #cancelReconnect: (() => void) | undefined;

  constructor(options: QemuConnectionOptions) {
    this.#options = options;
  }

  /** The QMP client; undefined while there is no connection. */
  get qmp(): QmpClient | undefined {
    return this.#qmp;
  }

  async connect(options: { timeoutMs: number; signal?: AbortSignal | undefined }): Promise<void> {
    const { dir, qemu, clock, onEvent } = this.#options;
    const onClose = () => {
      this.#qmp = undefined;
      this.watch();
    };
    const qmp = await openMonitor(dir, qemu, { ...options, clock, onEvent, onClose });
    if (this.#closed) qmp.close();
    else this.#qmp = qmp;
  }

  /** Reconnects as soon as possible, or reports that the process has exited. */
  watch(): void {
    this.#watch().catch((err: unknown) => this.#options.log.error({ err }, 'Cannot watch QEMU'));
  }

  /** Closes the connection for good; QEMU keeps running. */
  close(): void {
    this.#closed = true;
    this.#cancelReconnect?.();
    this.#qmp?.close();
    this.#qmp = undefined;
  }

  async #watch(): Promise<void> {
    const { qemu, clock, onExit } = this.#options;
    if (this.#closed) return;
    const hasExited = await qemu.waitForExit(EXIT_MS);
    if (this.#closed) return;
    if (hasExited) await onExit();
    else this.#cancelReconnect = clock.after(RECONNECT_MS, () => void this.#reconnect());
  }

  async #reconnect(): Promise<void> {
    try {
      await this.connect({ timeoutMs: RECONNECT_TIMEOUT_MS });
    } catch {
      this.watch();
      return;
    }
    // After a failure the connection is closed again, which leads to the next reconnect.
    await this.#options
      .onReconnect()
      .catch((err: unknown) => this.#options.log.warn({ err }, 'Cannot query QEMU after reconnecting'));
  }
}
