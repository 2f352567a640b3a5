import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { Accelerator } from './accelerator.ts';
import type { User } from './process.ts';

/** What all domains of one hypervisor share. */
export interface QemuContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Runs QEMU and swtpm; undefined: we do. */
  readonly user: User | undefined;
  readonly qemuBinary: string;
  readonly swtpmBinary: string;
  readonly ovmfDir: string;
  readonly accelerator: Accelerator;
  /** Of each copy of a disk; unlimited where undefined. */
  readonly copyBytesPerSecond?: number | undefined;
}
