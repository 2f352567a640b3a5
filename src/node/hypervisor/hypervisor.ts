/**
 * The port to what runs guests. `qemu/` runs real ones, `fake/` simulates them; both pass conformance.ts.
 *
 *   (absent) ──create──► running ◄──resume── paused
 *                          │  ▲────────────────▲
 *                          │  └──── pause ─────┘
 *                          ├─ the guest shuts down ──► ended: shutdown
 *                          ├─ destroy ───────────────► ended: destroyed
 *                          └─ the process dies ──────► ended: crashed
 *   ended ──remove──► (absent)
 *
 * How one goes to another hypervisor is migration.ts's.
 *
 * Domains outlive this process: a new one finds them again with `adopt`, in the state in which they are, also those that
 * ended meanwhile. One caller at a time for each domain; calls for different domains run side by side.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { DomainDefinition, PluggableDevice } from '#node/definition/domain-definition.ts';
import type { GuestLines } from '#node/hypervisor/guest-lines.ts';
import type { DomainMigration, MigrationPort } from '#node/hypervisor/migration.ts';

export interface MachineType {
  readonly name: string;
  readonly alias?: string;
  readonly deprecated: boolean;
  readonly maxCpus: number;
}

export interface Capabilities {
  readonly machines: readonly MachineType[];
  readonly accelerator: 'kvm' | 'tcg' | 'simulated';
  /** What its processors can, as QEMU names it; absent: nobody knows. */
  readonly cpuFeatures?: readonly string[];
  /** `QEMU 7.2.22`. */
  readonly version: string;
}

export type DomainState =
  | { readonly state: 'running' }
  /**
   * `ioError`: by the hypervisor, because a disk could not be written (no space left, for one); resume tries again.
   * `migration`: for the moment of its move, or because it has gone.
   */
  | { readonly state: 'paused'; readonly why?: 'ioError' | 'migration' }
  /** It is still elsewhere (migration.ts). */
  | { readonly state: 'incoming' }
  | {
      readonly state: 'ended';
      readonly how: 'shutdown' | 'destroyed' | 'crashed' | 'migrated';
      readonly message?: string;
    };

export interface Domain {
  readonly id: string;
  readonly name: string;
  readonly machine: string;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly current: DomainState;
  /** The process of the guest, where there is one. */
  readonly pid?: number;
  readonly origin?: DomainDefinition['origin'];
  /** Rises with every change of its devices that this process has seen: whoever learned before that has to learn again. */
  readonly deviceEvents: number;
  /** Whether somebody in the guest listens on its line to an agent; absent where it has no line. */
  readonly agent?: 'connected' | 'disconnected';
  /** Its file systems are frozen (guest-lines.ts) until then: milliseconds since the epoch. */
  readonly frozenUntilMs?: number;
  /** How often its watchdog has fired while this process looked at it, and what it did the last time, in QEMU's word. */
  readonly watchdog?: { readonly times: number; readonly action: string };
  /** The last one that it has to do with: that brought it here, or takes it away. */
  readonly migration?: DomainMigration;
}

/** A domain as it is now: with what was plugged in, without what the guest has let go. */
export interface DomainInspection {
  readonly definition: DomainDefinition;
  /** Ids of devices that the guest was asked to let go, and has not yet. Forgotten by the next process: ask again. */
  readonly leaving: readonly string[];
}

/** What went wrong at the edge to the hypervisor; worth another try unless `permanent`. */
export class HypervisorError extends Error {
  override readonly name = 'HypervisorError';
  /** Trying again with the same definition will fail again. */
  readonly permanent: boolean;

  constructor(message: string, options: { cause?: unknown; permanent?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.permanent = options.permanent ?? false;
  }
}

export interface DiskCopy {
  /** Ours to choose: the same one is the same copy, also for the next process. */
  readonly copyId: string;
  readonly deviceId: string;
  /** A file that the hypervisor may write; it becomes a qcow2 image, complete in itself. */
  readonly path: string;
}

export type CopyState =
  | { readonly state: 'copying'; readonly doneBytes: number; readonly totalBytes: number }
  | { readonly state: 'done' }
  /** Also where the guest ended meanwhile. */
  | { readonly state: 'failed'; readonly message: string };

export interface Hypervisor extends MigrationPort, GuestLines {
  capabilities(): Promise<Capabilities>;
  /** Finds the domains of earlier processes; called once, before anything else. Leaves guests untouched. */
  adopt(): Promise<void>;
  list(): readonly Domain[];
  get(id: string): Domain | undefined;
  /** Called with the id after each change of a domain's state; the result ends it. */
  onChange(listener: (id: string) => void): () => void;

  /**
   * Starts the guest, or only prepares it with `paused`. Where a domain of this id is there already, nothing happens:
   * it is never started twice. A start that fails leaves nothing behind.
   */
  create(definition: DomainDefinition, options?: { paused?: boolean; signal?: AbortSignal }): Promise<void>;
  pause(id: string): Promise<void>;
  resume(id: string): Promise<void>;
  /** Presses the power button. The guest decides; the state changes when it has shut down. */
  powerDown(id: string): Promise<void>;
  /** Asks the guest to restart itself. */
  softReboot(id: string): Promise<void>;
  /** Presses the reset button: the same domain begins anew. */
  reset(id: string): Promise<void>;
  /** Switches it off; resolves when the guest is no more. Fine where it has ended or is absent. */
  destroy(id: string): Promise<void>;
  /** Clears away what an ended domain left behind; refuses where it still runs. Fine where it is absent. */
  remove(id: string): Promise<void>;
  /** Resolves when the guest's hypervisor answers; rejects where it does not in time, or there is no guest that runs. */
  ping(id: string, options: { readonly timeoutMs: number }): Promise<void>;
  /** Every device with the address that the hypervisor itself tells; throws while it cannot tell. */
  learn(id: string): Promise<readonly LearnedDevice[]>;
  /** Undefined where there is no such domain. */
  inspect(id: string): DomainInspection | undefined;
  /**
   * Plugs a device in at its address while the guest runs or is paused. Where one of this id is there already, nothing
   * happens. A failure leaves nothing behind; it is `permanent` where the guest has no such place, or it is taken.
   */
  plug(id: string, device: PluggableDevice): Promise<void>;
  /**
   * Asks the guest to let go of a device; resolves when it was asked. When it has, the device is gone from `inspect` and
   * `learn`, its medium is closed, and listeners of onChange are called. Fine where there is no such device.
   */
  unplug(id: string, deviceId: string): Promise<void>;
  /**
   * Pulls the cable of an interface, or puts it back, while the guest runs or is paused; `inspect` tells which. Fine where
   * it is so already, or there is no such interface.
   */
  setLink(id: string, deviceId: string, link: 'up' | 'down'): Promise<void>;
  /** Both directions of the serial console; several may be open at a time, all see the same. Ends with the domain. */
  openConsole(id: string): Promise<Duplex>;
  /**
   * A connection of its own to the display, which speaks RFB (VNC) without a password; several may be open at a time.
   * Rejects where the guest has no display. Ends with the domain.
   */
  openDisplay(id: string): Promise<Duplex>;
  /**
   * What the display shows now, as PNG of at most SCREENSHOT_BYTES. `moveCursor` moves the pointer there and back before,
   * which wakes screens up. Rejects where the guest has no display.
   */
  screenshot(id: string, options: { readonly moveCursor: boolean }): Promise<Buffer>;
  /** The last of what the serial console said, at most CONSOLE_LOG_BYTES, also of ended domains until `remove`. */
  readConsoleLog(id: string): Promise<Buffer>;
  /** The last of what the hypervisor itself said about the domain, at most LOG_BYTES, also of ended ones until `remove`. */
  readLog(id: string): Promise<Buffer>;
  /** The medium of a disk has grown; the guest is told. */
  resizeDisk(id: string, deviceId: string, bytes: number): Promise<void>;
  /**
   * Copies disks as they are at one and the same moment, while the guest goes on. Where all of them have begun already,
   * nothing happens. When one has come to its end, listeners of onChange are called.
   */
  startCopies(id: string, copies: readonly DiskCopy[]): Promise<void>;
  /** Undefined where there is none, or no such domain. What has ended is told until endCopy. */
  copyState(id: string, copyId: string): Promise<CopyState | undefined>;
  /** Gives it up where it still goes on, and forgets it. Fine where there is none, or no such domain. */
  endCopy(id: string, copyId: string): Promise<void>;
  /** Lets go of everything without touching guests. */
  close(): Promise<void>;
}

export const CONSOLE_LOG_BYTES = 1024 * 1024;
export const LOG_BYTES = 64 * 1024;
/** A PNG of noise on the largest screen that QEMU's own cards have. */
export const SCREENSHOT_BYTES = 64 * 1024 * 1024;
