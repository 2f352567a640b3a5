/**
 * A hypervisor without guests: it meets the contract of hypervisor.ts but boots nothing. Scenario tests and fleets of
 * thousands of VMs use it (`--hypervisor fake`); it is always labelled as simulated. Tests control the guests through
 * `guest`, and inject failures with `failNextCreate` and similar methods.
 */
import type { Duplex } from 'node:stream';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { Clock } from '#lib/clock.ts';
import type { DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import {
  HypervisorError,
  type CopyState,
  type DiskCopy,
  type DomainInfo,
  type DomainInspection,
  type Hypervisor,
} from '#node/hypervisor/hypervisor.ts';
import type { Capabilities, MachineType } from '#node/hardware/capabilities.ts';
import type { AgentCommand, FreezeOptions, GuestPort } from '#node/hypervisor/guest-access.ts';
import type {
  IncomingMigration,
  MigrationEndpoint,
  OutgoingMigration,
  SendOptions,
  TransferredState,
} from '#node/hypervisor/migration.ts';
import { resolveCopiedDisks, type CopiedDisk } from '#node/hypervisor/fake/fake-copies.ts';
import { FakeFreezes } from '#node/hypervisor/fake/fake-freezes.ts';
import type { FakeGuest, GuestControls } from '#node/hypervisor/fake/fake-guest.ts';
import { FakeHost, type HostHolder } from '#node/hypervisor/fake/fake-host.ts';
import { FAKE_MACHINES } from '#node/hypervisor/fake/fake-machines.ts';
import * as source from '#node/hypervisor/fake/fake-source.ts';
import type { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import * as target from '#node/hypervisor/fake/fake-target.ts';
import { migrationRefusal } from '#node/hypervisor/fake/guest-record.ts';

export interface FakeHypervisorOptions {
  readonly clock: Clock;
  /** Directory in which guests are stored for the next process. Without it, guests live as long as their host. */
  readonly dir?: string;
  /** The host of an earlier hypervisor of this process, with its guests. */
  readonly host?: FakeHost;
  readonly machines?: readonly MachineType[];
  /** Duration of a start; default: 0. */
  readonly latencyMs?: number;
  /** Writes the files of disk copies (copy-images.ts); without it they stay as they are. */
  readonly copyImages?: (copies: readonly CopiedDisk[]) => Promise<void>;
  /** Moves real images with their guests (realImages of copy-images.ts). Without it, all disks have SIMULATED_BYTES. */
  readonly images?: source.RealImages;
  /** Persistent state, if several hosts share it. */
  readonly states?: FakeStates;
}

const SIMULATED_BYTES = 64 * 2 ** 20;

export interface FakeHypervisor extends Hypervisor {
  readonly host: FakeHost;
  guest(id: string): GuestControls;
  /** Makes the next start fail with this error. Several calls queue several failures; the same holds for the others. */
  failNextCreate(error: HypervisorError): void;
  failNextPlug(error: HypervisorError): void;
  failNextReceive(error: HypervisorError): void;
  failNextSend(error: HypervisorError): void;
  failNextStore(error: HypervisorError): void;
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
  readonly #images: source.RealImages | undefined;
  readonly #failures = newFailureQueues();
  readonly #freezes: FakeFreezes;
  #holdsHost = false;
  readonly #holder: HostHolder = {
    onChange: (id: string) => {
      for (const listener of this.#listeners) listener(id);
    },
    onLost: () => this.#dropHost(),
  };

  constructor({ clock, dir, host, machines, latencyMs, copyImages, images, states }: FakeHypervisorOptions) {
    this.host = host ?? new FakeHost(dir, states === undefined ? {} : { states });
    this.#images = images;
    this.#clock = clock;
    this.#freezes = new FakeFreezes(clock, this.host);
    this.#machines = machines ?? FAKE_MACHINES;
    this.#latencyMs = latencyMs ?? 0;
    this.#copyImages = copyImages;
  }

  async capabilities(): Promise<Capabilities> {
    return { machines: this.#machines, accelerator: 'simulated', version: 'simulated, as QEMU 7.2' };
  }

  async adopt(): Promise<void> {
    this.#holdsHost = true;
    this.host.acquire(this.#holder);
    for (const guest of this.host.guests()) {
      const { migration, current } = guest.record;
      if (migration?.step === 'committed' && current.state === 'incoming') target.commitGuest(this.host, guest);
    }
    this.#freezes.adopt();
  }

  list(): readonly DomainInfo[] {
    return this.#holdsHost ? [...this.host.guests()].map(({ domain }) => domain) : [];
  }

  get(id: string): DomainInfo | undefined {
    return this.#holdsHost ? this.host.guest(id)?.domain : undefined;
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
    this.#checkHoldsHost(`start domain "${definition.name}"`);
    if (this.host.guest(definition.id) !== undefined) return;
    this.#throwInjectedFailure('create');
    this.#checkMachine(definition);
    this.host.addGuest(definition, { startedAtMs: this.#clock.now(), paused });
  }

  async pause(id: string): Promise<void> {
    this.#changeableGuest(id, 'pause').pause();
  }

  async resume(id: string): Promise<void> {
    this.#changeableGuest(id, 'resume').resume();
  }

  async powerDown(id: string): Promise<void> {
    const guest = this.#liveGuest(id, 'power down');
    if (guest.record.migration?.step !== 'sending') this.#changeableGuest(id, 'power down');
    guest.powerDown();
  }

  async softReboot(id: string): Promise<void> {
    this.#changeableGuest(id, 'restart').reboot();
  }

  async reset(id: string): Promise<void> {
    this.#changeableGuest(id, 'reset').reboot();
  }

  async destroy(id: string): Promise<void> {
    this.#checkHoldsHost(`destroy domain ${id}`);
    this.host.guest(id)?.destroy();
  }

  async remove(id: string): Promise<void> {
    this.#checkHoldsHost(`remove domain ${id}`);
    const guest = this.host.guest(id);
    if (guest === undefined) return;
    if (guest.record.current.state !== 'ended') throw wrongStateError('remove', guest, 'ended');
    this.host.remove(id);
    this.#freezes.forget(id);
  }

  async ping(id: string): Promise<void> {
    this.#liveGuest(id, 'ping');
  }

  async learn(id: string): Promise<readonly LearnedDevice[]> {
    return toLearnedDevices(this.#liveGuest(id, 'learn the devices of').definition);
  }

  inspect(id: string): DomainInspection | undefined {
    return this.#holdsHost ? this.host.guest(id)?.inspection : undefined;
  }

  async plug(id: string, device: PluggableDevice): Promise<void> {
    const guest = this.#changeableGuest(id, 'plug a device into');
    this.#throwInjectedFailure('plug');
    guest.plug(device);
  }

  async unplug(id: string, deviceId: string): Promise<void> {
    this.#changeableGuest(id, 'unplug a device of').unplug(deviceId);
  }

  async setLink(id: string, deviceId: string, link: 'up' | 'down'): Promise<void> {
    this.#changeableGuest(id, 'set a link of').setLink(deviceId, link);
  }

  async openConsole(id: string): Promise<Duplex> {
    return this.#liveGuest(id, 'open the console of').openConsole();
  }

  async openDisplay(id: string): Promise<Duplex> {
    return this.#liveGuest(id, 'open the display of').display.open();
  }

  async screenshot(id: string): Promise<Buffer> {
    return this.#liveGuest(id, 'take a screenshot of').display.screenshot();
  }

  async readConsoleLog(id: string): Promise<Buffer> {
    return Buffer.from(this.#knownGuest(id, 'read the console log of').record.said, 'latin1');
  }

  async readLog(id: string): Promise<Buffer> {
    const { name, machine, current } = this.#knownGuest(id, 'read the log of').record;
    return Buffer.from(`simulating "${name}" on ${machine}\nstate: ${current.state}\n`);
  }

  async openPort(id: string, port: GuestPort): Promise<Duplex> {
    return this.#liveGuest(id, 'reach a port of').openPort(port);
  }

  async askAgent(id: string, command: AgentCommand): Promise<unknown> {
    return this.#liveGuest(id, 'ask the agent of').askAgent(command);
  }

  async freeze(id: string, options: FreezeOptions): Promise<void> {
    this.#changeableGuest(id, 'freeze');
    await this.#freezes.freezeOf(id).freeze(options);
  }

  async thaw(id: string): Promise<void> {
    this.#knownGuest(id, 'thaw');
    await this.#freezes.freezeOf(id).thaw();
  }

  async resizeDisk(id: string, deviceId: string): Promise<void> {
    const guest = this.#changeableGuest(id, 'resize a disk of');
    const isDisk = guest.definition.devices.some((device) => device.type === 'disk' && device.id === deviceId);
    if (isDisk) return;
    throw new HypervisorError(
      `Cannot resize disk "${deviceId}" of domain "${guest.record.name}": the guest has no such disk`,
    );
  }

  async startCopies(id: string, copies: readonly DiskCopy[]): Promise<void> {
    const known = this.#knownGuest(id, 'copy disks of');
    if (copies.every(({ copyId }) => known.copyState(copyId) !== undefined)) return;
    const guest = this.#changeableGuest(id, 'copy disks of');
    if (this.#copyImages !== undefined) await this.#copyImages(resolveCopiedDisks(guest.definition, copies));
    this.host.startCopies(guest, copies);
  }

  async copyState(id: string, copyId: string): Promise<CopyState | undefined> {
    this.#checkHoldsHost(`read the state of a copy of domain ${id}`);
    return this.host.guest(id)?.copyState(copyId);
  }

  async endCopy(id: string, copyId: string): Promise<void> {
    this.#checkHoldsHost(`end a copy of domain ${id}`);
    this.host.guest(id)?.endCopy(copyId);
  }

  async diskSizes(id: string): Promise<ReadonlyMap<string, number>> {
    const sizes = new Map<string, number>();
    for (const [deviceId, medium] of source.diskSources(this.#liveGuest(id, 'read the disk sizes of').definition)) {
      sizes.set(deviceId, (await this.#images?.bytes(medium)) ?? SIMULATED_BYTES);
    }
    return sizes;
  }

  readonly workingDir = (): undefined => undefined;

  async send(id: string, outgoing: OutgoingMigration, options: SendOptions): Promise<void> {
    const guest = this.#changeableGuest(id, 'send');
    const failure = this.#failures.send.shift();
    await source.send(this.host, guest, outgoing, { ...options, images: this.#images, failure });
  }

  async switchOver(id: string): Promise<TransferredState> {
    return source.switchOver(this.host, this.#knownGuest(id, 'switch over'));
  }

  async recordMigrated(id: string): Promise<void> {
    source.recordMigrated(this.host, this.#knownGuest(id, 'record the migration of'));
  }

  async leave(id: string): Promise<void> {
    source.leave(this.host, this.#knownGuest(id, 'end'));
  }

  async abortMigration(id: string): Promise<void> {
    source.abortMigration(this.host, this.#knownGuest(id, 'abort the migration of'));
  }

  async receive(
    definition: DomainDefinition,
    incoming: IncomingMigration,
    { signal }: { signal?: AbortSignal },
  ): Promise<MigrationEndpoint> {
    signal?.throwIfAborted();
    this.#checkHoldsHost(`receive domain "${definition.name}"`);
    const existing = this.host.guest(definition.id);
    if (existing !== undefined) throw wrongStateError('receive', existing, 'absent');
    this.#throwInjectedFailure('receive');
    this.#checkMachine(definition);
    return target.receive(this.host, definition, incoming);
  }

  async store(id: string, sent: TransferredState, { signal }: { signal?: AbortSignal }): Promise<void> {
    signal?.throwIfAborted();
    const guest = this.#knownGuest(id, 'store');
    this.#throwInjectedFailure('store');
    target.store(this.host, guest, sent);
  }

  async commit(id: string): Promise<void> {
    target.commitGuest(this.host, this.#knownGuest(id, 'commit'));
  }

  async close(): Promise<void> {
    this.host.release(this.#holder);
    this.#dropHost();
  }

  guest(id: string): GuestControls {
    return this.#knownGuest(id, 'reach the guest of');
  }

  failNextCreate(error: HypervisorError): void {
    this.#failures.create.push(error);
  }

  failNextPlug(error: HypervisorError): void {
    this.#failures.plug.push(error);
  }

  failNextReceive(error: HypervisorError): void {
    this.#failures.receive.push(error);
  }

  failNextSend(error: HypervisorError): void {
    this.#failures.send.push(error);
  }

  failNextStore(error: HypervisorError): void {
    this.#failures.store.push(error);
  }

  #dropHost(): void {
    this.#holdsHost = false;
    this.#freezes.close();
    this.#listeners.clear();
  }

  #knownGuest(id: string, verb: string): FakeGuest {
    this.#checkHoldsHost(`${verb} domain ${id}`);
    const guest = this.host.guest(id);
    if (guest === undefined) throw new HypervisorError(`Cannot ${verb} domain ${id}: it does not exist`);
    return guest;
  }

  #liveGuest(id: string, verb: string): FakeGuest {
    const guest = this.#knownGuest(id, verb);
    if (guest.record.current.state === 'ended') throw wrongStateError(verb, guest, 'running or paused');
    return guest;
  }

  /** Returns a guest that has not ended and does not take part in a migration. */
  #changeableGuest(id: string, verb: string): FakeGuest {
    const guest = this.#liveGuest(id, verb);
    const why = migrationRefusal(guest.record);
    if (why !== undefined) throw source.migrationError(verb, guest, why);
    return guest;
  }

  #throwInjectedFailure(method: keyof ReturnType<typeof newFailureQueues>): void {
    const failure = this.#failures[method].shift();
    if (failure !== undefined) throw failure;
  }

  #checkMachine({ name, machine }: DomainDefinition): void {
    if (this.#machines.some((known) => known.name === machine)) return;
    const message = `Cannot start domain "${name}": unsupported machine type "${machine}"`;
    throw new HypervisorError(message, { permanent: true });
  }

  /** Throws before adopt, and after another hypervisor has acquired the host, as with real guests. */
  #checkHoldsHost(action: string): void {
    if (!this.#holdsHost) throw new HypervisorError(`Cannot ${action}: the host is not acquired; call adopt first`);
  }
}

/** Returns empty queues of errors for the next calls to fail with. */
function newFailureQueues(): Record<'create' | 'plug' | 'receive' | 'send' | 'store', HypervisorError[]> {
  return { create: [], plug: [], receive: [], send: [], store: [] };
}

function wrongStateError(verb: string, { record }: FakeGuest, expected: string): HypervisorError {
  return new HypervisorError(
    `Cannot ${verb} domain "${record.name}": the guest is ${record.current.state}; expected ${expected}`,
  );
}
