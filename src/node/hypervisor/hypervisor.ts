/**
 * The hypervisor port. `qemu/` runs real guests, `fake/` simulates them; both pass conformance.ts.
 *
 *   (absent) ──create──► running ◄──resume── paused
 *                          │  ▲────────────────▲
 *                          │  └──── pause ─────┘
 *                          ├─ the guest shuts down ──► ended: shutdown
 *                          ├─ destroy ───────────────► ended: destroyed
 *                          └─ the process dies ──────► ended: crashed
 *   ended ──remove──► (absent)
 *
 * The move of a guest to another hypervisor is in migration.ts.
 *
 * Domains outlive this process: the next one finds them with `adopt` in their present state, including those that ended
 * meanwhile. Calls for one domain must come one at a time; calls for different domains may run concurrently.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type { DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';
import type { GuestAccess } from '#node/hypervisor/guest-access.ts';
import type { DomainMigration, MigrationPort } from '#node/hypervisor/migration.ts';

export type DomainState =
  | { readonly state: 'running' }
  /**
   * `ioError`: paused by the hypervisor because a disk could not be written, for example without free space; resume
   * retries. `migration`: paused for the switchover of a migration, or because the guest runs on the target now.
   */
  | {
      readonly state: 'paused';
      readonly why?: 'ioError' | 'migration';
      /** With `ioError`: the disks with errors, if they are known. */
      readonly failedDisks?: readonly FailedDisk[];
    }
  /** The guest still runs on the source node (migration.ts). */
  | { readonly state: 'incoming' }
  | {
      readonly state: 'ended';
      readonly how: 'shutdown' | 'destroyed' | 'crashed' | 'migrated';
      readonly message?: string;
    };

/** A disk that could not be read or written while the guest ran. `noSpace`: the storage of its medium is full. */
export interface FailedDisk {
  readonly deviceId: string;
  readonly cause: 'noSpace' | 'failed';
}

export interface DomainInfo {
  readonly id: string;
  readonly name: string;
  readonly machine: string;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly current: DomainState;
  /** The process of the guest; absent if there is none. */
  readonly pid?: number;
  readonly origin?: DomainDefinition['origin'];
  /**
   * Increases with every change of the devices that this process observes. What was learned before the change is out of
   * date.
   */
  readonly deviceEvents: number;
  /** Connection state of the guest agent; absent if the guest has no agent channel. */
  readonly agent?: 'connected' | 'disconnected';
  /** End of the freeze of the guest's file systems, in milliseconds since the epoch; absent if they are not frozen. */
  readonly frozenUntilMs?: number;
  /**
   * Number of times that the watchdog fired since this process observes the domain, and its last action, in QEMU's
   * words.
   */
  readonly watchdog?: { readonly times: number; readonly action: string };
  /** The latest migration that brought the guest here or takes it away. */
  readonly migration?: DomainMigration;
}

/** Reports whether a migration of the domain is in progress, or may be: its record does not say that it was aborted. */
export function isDomainMoving(domain: DomainInfo | undefined): boolean {
  const { migration, current } = domain ?? {};
  if (current?.state === 'incoming') return true;
  return migration?.role === 'source' && migration.step !== 'aborted';
}

/** The current definition of a domain: with the devices plugged in later, without those that the guest has released. */
export interface DomainInspection {
  readonly definition: DomainDefinition;
  /**
   * Ids of devices that the guest was asked to release and has not released yet. The next process does not know them:
   * unplug again.
   */
  readonly unplugging: readonly string[];
}

/** Why a disk of a guest could not be opened. */
export interface DiskProblem {
  readonly deviceId: string;
  /** `inUse`: another process has the medium open. `damaged`: the medium is not an image that can be read. */
  readonly is: 'inUse' | 'damaged';
  /** The reason in the words of the hypervisor. */
  readonly detail: string;
}

/** A failure of the hypervisor; worth a retry unless `permanent`. */
export class HypervisorError extends Error {
  override readonly name = 'HypervisorError';
  /** A retry with the same definition would fail in the same way. */
  readonly permanent: boolean;
  /** Set if a disk of the guest could not be opened. */
  readonly disk: DiskProblem | undefined;

  constructor(message: string, options: { cause?: unknown; permanent?: boolean; disk?: DiskProblem | undefined } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.permanent = options.permanent ?? false;
    this.disk = options.disk;
  }
}

/** A port of a guest cannot be reached because of the guest, not because of the hypervisor. */
export class GuestPortError extends HypervisorError {
  /** `Refused`: nothing listens on the port. `NoAnswer`: the guest did not respond in time. */
  readonly reason: 'Refused' | 'NoAnswer';

  constructor(reason: GuestPortError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

export function portRefusedError(port: number): GuestPortError {
  return new GuestPortError('Refused', `the guest refused the connection to port ${port}`);
}

export function portNoAnswerError(port: number, timeoutMs: number): GuestPortError {
  return new GuestPortError('NoAnswer', `port ${port} did not answer within ${timeoutMs} ms`);
}

export interface DiskCopy {
  /** Chosen by the caller. The same id means the same copy, also for the next process. */
  readonly copyId: string;
  readonly deviceId: string;
  /** A file that the hypervisor may write. It becomes a self-contained qcow2 image. */
  readonly path: string;
}

export type CopyState =
  | { readonly state: 'copying'; readonly doneBytes: number; readonly totalBytes: number }
  | { readonly state: 'done' }
  /** Includes copies whose guest ended before they were complete. */
  | { readonly state: 'failed'; readonly message: string };

export interface CreateOptions {
  /** Prepares the guest without starting it. */
  readonly paused?: boolean;
  /** The path of the network namespace of the guest's process; absent: that of the host. */
  readonly networkNamespace?: string;
  readonly signal?: AbortSignal;
}

export interface Hypervisor extends MigrationPort, GuestAccess {
  capabilities(): Promise<Capabilities>;
  /**
   * Finds the domains of earlier processes without touching their guests. Must be called once, before any other method.
   */
  adopt(): Promise<void>;
  list(): readonly DomainInfo[];
  get(id: string): DomainInfo | undefined;
  /**
   * Calls the listener with the id after each change of a domain's state. Returns a function that removes the listener.
   */
  onChange(listener: (id: string) => void): () => void;

  /**
   * Starts the guest, or only prepares it with `paused`. Does nothing if a domain with this id exists, so that a guest
   * never starts twice. A failed start leaves nothing behind.
   */
  create(definition: DomainDefinition, options?: CreateOptions): Promise<void>;
  pause(id: string): Promise<void>;
  resume(id: string): Promise<void>;
  /** Presses the power button. The guest decides what to do; its state changes once it has shut down. */
  powerDown(id: string): Promise<void>;
  /** Asks the guest to restart itself. */
  softReboot(id: string): Promise<void>;
  /** Presses the reset button: the guest restarts in the same domain. */
  reset(id: string): Promise<void>;
  /** Switches the guest off and resolves once it has ended. Does nothing if the domain has ended or does not exist. */
  destroy(id: string): Promise<void>;
  /**
   * Removes everything that an ended domain left behind. Refuses if the domain still runs; does nothing if it does not
   * exist.
   */
  remove(id: string): Promise<void>;
  /**
   * Resolves when the hypervisor process of the guest answers. Rejects if it does not answer in time or the guest does
   * not run.
   */
  ping(id: string, options: { readonly timeoutMs: number }): Promise<void>;
  /** Returns every device with the address that the hypervisor reports. Throws while the hypervisor cannot be asked. */
  learn(id: string): Promise<readonly LearnedDevice[]>;
  /** Returns undefined if the domain does not exist. */
  inspect(id: string): DomainInspection | undefined;
  /**
   * Plugs a device in at its address while the guest runs or is paused. Does nothing if the guest has a device with
   * this id. A failure leaves nothing behind; it is `permanent` if the guest does not have that address or the address
   * is in use.
   */
  plug(id: string, device: PluggableDevice): Promise<void>;
  /**
   * Asks the guest to release a device; resolves when it was asked. Once the guest has released the device, `inspect`
   * and `learn` no longer contain it, its medium is closed, and listeners of onChange are called. Does nothing if there
   * is no such device.
   */
  unplug(id: string, deviceId: string): Promise<void>;
  /**
   * Sets the link of an interface up or down while the guest runs or is paused; `inspect` shows the link. Does nothing
   * if the link is in that state already or there is no such interface.
   */
  setLink(id: string, deviceId: string, link: 'up' | 'down'): Promise<void>;
  /**
   * Opens the serial console in both directions. Several can be open at a time and show the same output. Ends with the
   * domain.
   */
  openConsole(id: string): Promise<Duplex>;
  /**
   * Opens a separate connection to the display, which speaks RFB (VNC) without a password; several can be open at a
   * time. Rejects if the guest has no display. Ends with the domain.
   */
  openDisplay(id: string): Promise<Duplex>;
  /**
   * Returns a PNG of the display, of at most SCREENSHOT_BYTES. `moveCursor` first moves the pointer forth and back,
   * which wakes the screen. Rejects if the guest has no display.
   */
  screenshot(id: string, options: { readonly moveCursor: boolean }): Promise<Buffer>;
  /**
   * Returns the end of the serial console's output, at most CONSOLE_LOG_BYTES; also for ended domains until `remove`.
   */
  readConsoleLog(id: string): Promise<Buffer>;
  /**
   * Returns the end of the hypervisor's own log of the domain, at most LOG_BYTES; also for ended domains until
   * `remove`.
   */
  readLog(id: string): Promise<Buffer>;
  /** Informs the guest that the medium of a disk has grown. */
  resizeDisk(id: string, deviceId: string, bytes: number): Promise<void>;
  /**
   * Starts to copy disks as of one point in time while the guest keeps running. Does nothing if all of these copies
   * exist. Listeners of onChange are called when a copy ends.
   */
  startCopies(id: string, copies: readonly DiskCopy[]): Promise<void>;
  /** Returns undefined if there is no such copy or domain. A finished copy is reported until endCopy. */
  copyState(id: string, copyId: string): Promise<CopyState | undefined>;
  /** Cancels a copy that is still running, and forgets it. Does nothing if there is no such copy or domain. */
  endCopy(id: string, copyId: string): Promise<void>;
  /** Releases all resources of this process; the guests keep running. */
  close(): Promise<void>;
}

export const CONSOLE_LOG_BYTES = 1024 * 1024;
export const LOG_BYTES = 64 * 1024;
/** The size of a PNG of noise on the largest screen that QEMU's own graphics cards have. */
export const SCREENSHOT_BYTES = 64 * 1024 * 1024;
