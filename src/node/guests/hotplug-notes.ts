/**
 * The agent's notes about hotplug, by domain and device: failed attempts, and the claims of the disks in the guest. They are
 * kept in memory only: a new agent tries again, and verifies the claims. Times are those of Clock.elapsed.
 */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { backoffMs } from '#lib/backoff.ts';

export interface HotplugNote {
  /** The last attempt, if it did not finish the change. */
  readonly last?: {
    readonly is: 'waiting' | 'failed' | 'unplugging';
    readonly reason: string;
    readonly message: string;
    readonly tries: number;
    /** Time of the next attempt. */
    readonly dueAtMs: number;
    /** The claim of the attempt, whose volume may have been prepared. */
    readonly claim?: string | undefined;
  };
  /** The claim of the disk in the guest; '' if it is not the one in the spec. */
  readonly claim?: string;
  /** The guest released the device and its volume is released; kept until the instance's status shows that. */
  readonly isCleared?: boolean;
}

/** An unplug request is repeated, because the guest may have been busy or not ready for hotplug. */
const UNPLUG_RETRY_MS = 30_000;
export const UNPLUG_REQUESTED = 'The guest was asked to release the device and has not released it yet.';
const WAITING_BACKOFF = { firstMs: 50, maxMs: 10_000 };
/** A permanent failure is tried again, too: it may be resolved when another device is unplugged. */
const FAILED_BACKOFF = { firstMs: 30_000, maxMs: 300_000 };

const NONE: ReadonlyMap<string, HotplugNote> = new Map();

export class HotplugNotes {
  readonly #domains = new Map<string, Map<string, HotplugNote>>();

  get(id: string): ReadonlyMap<string, HotplugNote> {
    return this.#domains.get(id) ?? NONE;
  }

  /** Reports whether the message differs from that of the previous attempt. */
  recordFailure(
    id: string,
    device: string,
    { is, reason, message, claim }: { is: 'waiting' | 'failed'; reason: string; message: string; claim?: string },
    elapsedMs: number,
  ): boolean {
    const { isCleared: _past, ...note } = this.#note(id, device);
    const before = note.last?.is === is ? note.last : undefined;
    const tries = (before?.tries ?? 0) + 1;
    const dueAtMs = elapsedMs + backoffMs(tries, is === 'failed' ? FAILED_BACKOFF : WAITING_BACKOFF);
    this.#set(id, device, { ...note, last: { is, reason, message, tries, dueAtMs, claim } });
    return before?.message !== message;
  }

  /** `failure` is the message if the request could not be sent. */
  recordUnplugRequest(id: string, device: string, elapsedMs: number, failure?: string): void {
    const note = this.#note(id, device);
    const [reason, message] = failure === undefined ? ['WaitingForGuest', UNPLUG_REQUESTED] : ['UnplugFailed', failure];
    const tries = (note.last?.tries ?? 0) + 1;
    const dueAtMs = elapsedMs + UNPLUG_RETRY_MS;
    this.#set(id, device, { ...note, last: { is: 'unplugging', reason, message, tries, dueAtMs } });
  }

  /** Records the claim of a disk in the guest; '' = not the one in the spec. Without a claim, forgets the device. */
  recordClaim(id: string, device: string, claim: string | undefined): void {
    if (claim === undefined) this.#domains.get(id)?.delete(device);
    else this.#set(id, device, { claim });
  }

  /** Records the claims of all hotpluggable disks of an instance whose guest was started or has arrived here. */
  recordClaims(id: string, vmi: VirtualMachineInstance): void {
    for (const [name, claim] of hotpluggableClaims(vmi)) this.recordClaim(id, `disk-${name}`, claim);
  }

  recordCleared(id: string, device: string): void {
    this.#set(id, device, { isCleared: true });
  }

  /** Forgets the cleared devices of a domain; called when the instance's status shows that they are gone. */
  forgetCleared(id: string): void {
    const devices = this.#domains.get(id);
    for (const [device, { isCleared }] of devices ?? []) if (isCleared === true) devices?.delete(device);
    if (devices?.size === 0) this.#domains.delete(id);
  }

  forget(id: string): void {
    this.#domains.delete(id);
  }

  #note(id: string, device: string): HotplugNote {
    return this.get(id).get(device) ?? {};
  }

  #set(id: string, device: string, note: HotplugNote): void {
    let devices = this.#domains.get(id);
    if (devices === undefined) this.#domains.set(id, (devices = new Map()));
    devices.set(device, note);
  }
}

/** Returns the names of the hotpluggable claims, by volume. */
export function hotpluggableClaims({ spec }: VirtualMachineInstance): ReadonlyMap<string, string> {
  return new Map(
    (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim: claim }) =>
      claim?.hotpluggable === true ? [[name, claim.claimName] as const] : [],
    ),
  );
}
