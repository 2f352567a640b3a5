/**
 * What the agent remembers of devices that come and go, by domain and device: tries, and which claim a disk stands on. All
 * of it may be forgotten: a new agent asks again, and looks which claim it is. Times are those of Clock.elapsed.
 */
import { backoffMs } from '#lib/backoff.ts';

export interface HotplugNote {
  /** What came of the last try; absent where the device has been plugged in, or nothing was tried. */
  readonly last?: {
    readonly is: 'waiting' | 'failed' | 'asked';
    readonly reason: string;
    readonly message: string;
    readonly tries: number;
    /** When it is tried, or asked, again. */
    readonly dueAtMs: number;
    /** With which claim it was tried: something may have been made of that. */
    readonly claim?: string | undefined;
  };
  /** Which claim the disk in the guest stands on; '' where it is none that the spec names. */
  readonly claim?: string;
  /** The guest has let go and nothing of it is left; until the instance has been told. */
  readonly isCleared?: boolean;
}

/** The guest may be busy, or not know that it can. */
export const ASK_AGAIN_MS = 30_000;
/** What is told while it has not let go. */
export const ASKED = 'The guest has been asked to let go of it, and has not yet.';
const WAITING = { firstMs: 50, maxMs: 10_000 };
/** What cannot be may be once another device has gone. */
const FAILED = { firstMs: 30_000, maxMs: 300_000 };

const NONE: ReadonlyMap<string, HotplugNote> = new Map();

export class HotplugNotes {
  readonly #domains = new Map<string, Map<string, HotplugNote>>();

  of(id: string): ReadonlyMap<string, HotplugNote> {
    return this.#domains.get(id) ?? NONE;
  }

  /** Whether that is news: it was not what came of the try before. */
  refused(
    id: string,
    device: string,
    { is, reason, message, claim }: { is: 'waiting' | 'failed'; reason: string; message: string; claim?: string },
    elapsedMs: number,
  ): boolean {
    const { isCleared: _past, ...note } = this.#note(id, device);
    const before = note.last?.is === is ? note.last : undefined;
    const tries = (before?.tries ?? 0) + 1;
    const dueAtMs = elapsedMs + backoffMs(tries, is === 'failed' ? FAILED : WAITING);
    this.#set(id, device, { ...note, last: { is, reason, message, tries, dueAtMs, claim } });
    return before?.message !== message;
  }

  /** With a message where the guest could not even be asked. */
  asked(id: string, device: string, elapsedMs: number, fault?: string): void {
    const note = this.#note(id, device);
    const [reason, message] = fault === undefined ? ['WaitingForGuest', ASKED] : ['UnplugFailed', fault];
    const tries = (note.last?.tries ?? 0) + 1;
    const dueAtMs = elapsedMs + ASK_AGAIN_MS;
    this.#set(id, device, { ...note, last: { is: 'asked', reason, message, tries, dueAtMs } });
  }

  /** In the guest, on this claim; '' = on none that the spec names. */
  standsOn(id: string, device: string, claim: string | undefined): void {
    if (claim === undefined) this.#domains.get(id)?.delete(device);
    else this.#set(id, device, { claim });
  }

  cleared(id: string, device: string): void {
    this.#set(id, device, { isCleared: true });
  }

  /** The instance knows what has gone. */
  told(id: string): void {
    const devices = this.#domains.get(id);
    for (const [device, { isCleared }] of devices ?? []) if (isCleared === true) devices?.delete(device);
    if (devices?.size === 0) this.#domains.delete(id);
  }

  forget(id: string): void {
    this.#domains.delete(id);
  }

  #note(id: string, device: string): HotplugNote {
    return this.of(id).get(device) ?? {};
  }

  #set(id: string, device: string, note: HotplugNote): void {
    let devices = this.#domains.get(id);
    if (devices === undefined) this.#domains.set(id, (devices = new Map()));
    devices.set(device, note);
  }
}
