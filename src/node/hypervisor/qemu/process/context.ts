import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { Accelerator } from '#node/hypervisor/qemu/process/accelerator.ts';
import type { User } from '#node/hypervisor/qemu/process/process.ts';

/** The settings that all domains of one hypervisor share. */
export interface QemuContext {
  readonly clock: Clock;
  readonly log: Log;
  /** The user that runs QEMU and swtpm; undefined for our own user. */
  readonly user: User | undefined;
  readonly qemuBinary: string;
  readonly swtpmBinary: string;
  readonly ovmfDir: string;
  readonly accelerator: Accelerator;
  /** The bandwidth of each disk copy; undefined for unlimited. */
  readonly copyBytesPerSecond?: number | undefined;
}
