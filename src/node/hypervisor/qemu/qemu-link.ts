/**
 * The line to one QEMU, kept up as long as its process lives.
 *
 *   open ──QEMU hangs up──► is the process gone? ── yes ─► onGone
 *    ▲                             │ no
 *    └──────── try again ◄─────────┘
 */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { DomainDir } from './domain-dir.ts';
import { openMonitor } from './monitor.ts';
import type { OutlivingProcess } from './process.ts';
import type { QmpClient, QmpEvent } from './qmp.ts';

const HANG_UP_MS = 3000;
const RECONNECT_MS = 1000;
const RECONNECT_TIMEOUT_MS = 10_000;

export interface QemuLinkOptions {
  readonly dir: DomainDir;
  readonly qemu: OutlivingProcess;
  readonly clock: Clock;
  readonly log: Log;
  readonly onEvent: (event: QmpEvent) => void;
  /** Events were missed meanwhile. */
  readonly onBack: () => Promise<void>;
  /** The process is no more. */
  readonly onGone: () => Promise<void>;
}

export class QemuLink {
  readonly #options: QemuLinkOptions;
  #qmp: QmpClient | undefined;
  #closed = false;
  #cancelReconnect: (() => void) | undefined;

  constructor(options: QemuLinkOptions) {
    this.#options = options;
  }

  /** Undefined while QEMU cannot be reached. */
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

  /** Comes back to it when it can be reached again, or says that it is gone. */
  watch(): void {
    this.#watch().catch((err: unknown) => this.#options.log.error({ err }, 'cannot watch QEMU'));
  }

  /** For good; QEMU goes on. */
  close(): void {
    this.#closed = true;
    this.#cancelReconnect?.();
    this.#qmp?.close();
    this.#qmp = undefined;
  }

  async #watch(): Promise<void> {
    const { qemu, clock, onGone } = this.#options;
    if (this.#closed) return;
    const gone = await qemu.gone(HANG_UP_MS);
    if (this.#closed) return;
    if (gone) await onGone();
    else this.#cancelReconnect = clock.after(RECONNECT_MS, () => void this.#reconnect());
  }

  async #reconnect(): Promise<void> {
    try {
      await this.connect({ timeoutMs: RECONNECT_TIMEOUT_MS });
    } catch {
      this.watch();
      return;
    }
    // Where that fails it has hung up once more, and we come again.
    await this.#options.onBack().catch((err: unknown) => this.#options.log.warn({ err }, 'cannot ask QEMU'));
  }
}
