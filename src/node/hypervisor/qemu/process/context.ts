import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { Accelerator } from '#node/hypervisor/qemu/process/accelerator.ts';
import type { Sandboxes } from '#node/hypervisor/qemu/sandbox/sandbox.ts';

/** The settings that all domains of one hypervisor share. */
export interface QemuContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined if QEMU and swtpm run as our own user, without a sandbox. */
  readonly sandboxes: Sandboxes | undefined;
  readonly qemuBinary: string;
  readonly swtpmBinary: string;
  readonly ovmfDir: string;
  readonly accelerator: Accelerator;
  /** The bandwidth of each disk copy; undefined for unlimited. */
  readonly copyBytesPerSecond?: number | undefined;
}
