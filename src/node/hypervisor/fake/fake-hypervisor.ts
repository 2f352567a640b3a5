/**
 * A hypervisor without guests: it keeps every promise of hypervisor.ts and boots nothing. It carries scenarios and
 * fleets of thousands (`--hypervisor fake`), and is always labelled as simulated. Tests reach the guests' side of it
 * through `guest`, and the failures of a start or a plug through `failNextCreate` and `failNextPlug`.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { Clock } from '#lib/clock.ts';
import type { DomainDefinition, PluggableDevice } from '#node/definition/domain-definition.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import {
  HypervisorError,
  type Capabilities,
  type CopyState,
  type DiskCopy,
  type Domain,
  type DomainInspection,
  type Hypervisor,
  type MachineType,
} from '../hypervisor.ts';
import { copiedDisks, type CopiedDisk } from './fake-copies.ts';
import type { FakeGuest } from './fake-guest.ts';
import { FakeHost } from './fake-host.ts';
import { FAKE_MACHINES } from './fake-machines.ts';

export interface FakeHypervisorOptions {
  readonly clock: Clock;
  /** Guests are kept there and found again by the next process. Otherwise they live as long as their host. */
  readonly dir?: string;
  /** The host of an earlier hypervisor of this process: its guests are found again. */
  readonly host?: FakeHost;
  readonly machines?: readonly MachineType[];
  /** How long a start takes; no time unless set. */
  readonly latencyMs?: number;
  /** Makes the files of copies of disks (copy-images.ts); otherwise they stay as they are. */
  readonly copyImages?: (copies: readonly CopiedDisk[]) => Promise<void>;
}

/** What a guest does by itself. */
export interface GuestControls {
  shutDown(): void;
  crash(message: string): void;
  ignorePowerButton(): void;
  say(text: string): void;
  /** From now on it does not let go of devices until it is told to. */
  holdDevices(): void;
  /** Of one device that it was asked to let go, or of all. */
  letGo(deviceId?: string): void;
}

export interface FakeHypervisor extends Hypervisor {
  readonly host: FakeHost;
  guest(id: string): GuestControls;
  /** The next start fails with this; asked several times, the next several. */
  failNextCreate(error: HypervisorError): void;
  /** The same for the next device that is plugged in. */
  failNextPlug(error: HypervisorError): void;
}

export function createFakeHypervisor(options: FakeHypervisorOptions): FakeHypervisor {
  return new SimulatedHypervisor(options);
}

class SimulatedHypervisor implements FakeHypervisor {
  readonly host: FakeHost;
  readonly #clock: Clock;
  readonly #machines: readonly MachineType[];
  readonly #latencyMs: number;
  readonly #copyImages: FakeHypervisorOptions['copyImages'];
  readonly #listeners = new Set<(id: string) => void>();
  readonly #failures: HypervisorError[] = [];
  readonly #plugFailures: HypervisorError[] = [];
  #held = false;
  readonly #holder = {
    changed: (id: string) => {
      for (const listener of this.#listeners) listener(id);
    },
    lost: () => this.#letGo(),
  };

  constructor({ clock, dir, host, machines, latencyMs, copyImages }: FakeHypervisorOptions) {
    this.host = host ?? new FakeHost(dir);
    this.#clock = clock;
    this.#machines = machines ?? FAKE_MACHINES;
    this.#latencyMs = latencyMs ?? 0;
    this.#copyImages = copyImages;
  }

  async capabilities(): Promise<Capabilities> {
    return { machines: this.#machines, accelerator: 'simulated', version: 'simulated, as QEMU 7.2' };
  }

  async adopt(): Promise<void> {
    this.#held = true;
    this.host.hold(this.#holder);
  }

  list(): readonly Domain[] {
    return this.#held ? [...this.host.guests()].map(({ domain }) => domain) : [];
  }

  get(id: string): Domain | undefined {
    return this.#held ? this.host.guest(id)?.domain : undefined;
  }

  onChange(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async create(
    definition: DomainDefinition,
    { paused = false, signal }: { paused?: boolean; signal?: AbortSignal } = {},
  ): Promise<void> {
    signal?.throwIfAborted();
    if (this.#latencyMs > 0) await new Promise<void>((resolve) => this.#clock.after(this.#latencyMs, resolve));
    signal?.throwIfAborted();
    this.#checkHeld(`start domain "${definition.name}"`);
    if (this.host.guest(definition.id) !== undefined) return;
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
    if (!this.#machines.some(({ name }) => name === definition.machine)) {
      throw new HypervisorError(
        `Cannot start domain "${definition.name}": unsupported machine type "${definition.machine}"`,
        { permanent: true },
      );
    }
    this.host.begin(definition, { startedAtMs: this.#clock.now(), paused });
  }

  async pause(id: string): Promise<void> {
    this.#alive(id, 'pause').pause();
  }

  async resume(id: string): Promise<void> {
    this.#alive(id, 'resume').resume();
  }

  async powerDown(id: string): Promise<void> {
    this.#alive(id, 'power down').powerDown();
  }

  async softReboot(id: string): Promise<void> {
    this.#alive(id, 'restart').reboot();
  }

  async reset(id: string): Promise<void> {
    this.#alive(id, 'reset').reboot();
  }

  async destroy(id: string): Promise<void> {
    this.#checkHeld(`destroy domain ${id}`);
    this.host.guest(id)?.destroy();
  }

  async remove(id: string): Promise<void> {
    this.#checkHeld(`remove domain ${id}`);
    const guest = this.host.guest(id);
    if (guest === undefined) return;
    if (guest.record.current.state !== 'ended') throw refusal('remove', guest, 'ended');
    this.host.remove(id);
  }

  async learn(id: string): Promise<readonly LearnedDevice[]> {
    return learnedFrom(this.#alive(id, 'learn the devices of').definition);
  }

  inspect(id: string): DomainInspection | undefined {
    return this.#held ? this.host.guest(id)?.inspection : undefined;
  }

  async plug(id: string, device: PluggableDevice): Promise<void> {
    const guest = this.#alive(id, 'plug a device into');
    const failure = this.#plugFailures.shift();
    if (failure !== undefined) throw failure;
    guest.plug(device);
  }

  async unplug(id: string, deviceId: string): Promise<void> {
    this.#alive(id, 'unplug a device of').unplug(deviceId);
  }

  async openConsole(id: string): Promise<Duplex> {
    return this.#alive(id, 'open the console of').openConsole();
  }

  async readConsoleLog(id: string): Promise<Buffer> {
    return Buffer.from(this.#known(id, 'read the console log of').record.said, 'latin1');
  }

  async readLog(id: string): Promise<Buffer> {
    const { name, machine, current } = this.#known(id, 'read the log of').record;
    return Buffer.from(`simulating "${name}" on ${machine}\nit is ${current.state}\n`);
  }

  async resizeDisk(id: string, deviceId: string): Promise<void> {
    const guest = this.#alive(id, 'resize a disk of');
    const isDisk = guest.definition.devices.some((device) => device.type === 'disk' && device.id === deviceId);
    if (isDisk) return;
    throw new HypervisorError(`Cannot resize disk "${deviceId}" of domain "${guest.record.name}": it has no such disk`);
  }

  async startCopies(id: string, copies: readonly DiskCopy[]): Promise<void> {
    const known = this.#known(id, 'copy disks of');
    if (copies.every(({ copyId }) => known.copyState(copyId) !== undefined)) return;
    const guest = this.#alive(id, 'copy disks of');
    if (this.#copyImages !== undefined) await this.#copyImages(copiedDisks(guest.definition, copies));
    this.host.startCopies(guest, copies);
  }

  async copyState(id: string, copyId: string): Promise<CopyState | undefined> {
    this.#checkHeld(`look at a copy of domain ${id}`);
    return this.host.guest(id)?.copyState(copyId);
  }

  async endCopy(id: string, copyId: string): Promise<void> {
    this.#checkHeld(`end a copy of domain ${id}`);
    this.host.guest(id)?.endCopy(copyId);
  }

  async close(): Promise<void> {
    this.host.release(this.#holder);
    this.#letGo();
  }

  guest(id: string): GuestControls {
    return this.#known(id, 'reach the guest of');
  }

  failNextCreate(error: HypervisorError): void {
    this.#failures.push(error);
  }

  failNextPlug(error: HypervisorError): void {
    this.#plugFailures.push(error);
  }

  #letGo(): void {
    this.#held = false;
    this.#listeners.clear();
  }

  #known(id: string, verb: string): FakeGuest {
    this.#checkHeld(`${verb} domain ${id}`);
    const guest = this.host.guest(id);
    if (guest === undefined) throw new HypervisorError(`Cannot ${verb} domain ${id}: there is none`);
    return guest;
  }

  #alive(id: string, verb: string): FakeGuest {
    const guest = this.#known(id, verb);
    if (guest.record.current.state === 'ended') throw refusal(verb, guest, 'running or paused');
    return guest;
  }

  /** As with a real one: without adopt it knows nothing, and one at a time has the guests. */
  #checkHeld(what: string): void {
    if (!this.#held) throw new HypervisorError(`Cannot ${what}: this hypervisor does not hold its host; adopt first`);
  }
}

function refusal(verb: string, { record }: FakeGuest, expected: string): HypervisorError {
  return new HypervisorError(
    `Cannot ${verb} domain "${record.name}": it is ${record.current.state}; expected ${expected}`,
  );
}
