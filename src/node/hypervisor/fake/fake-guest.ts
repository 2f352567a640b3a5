/**
 * One simulated guest. It prints a banner at each boot, echoes console input, and shuts down when the power button is
 * pressed, unless it ignores the button. A paused guest does nothing; a button pressed meanwhile takes effect when it
 * resumes. An idle guest is small: no timers, the definition as text, buffers only for open consoles.
 */
import { Duplex } from 'node:stream';
import { invariant } from '#lib/invariant.ts';
import type { DomainDefinition, PluggableDevice } from '#node/hardware/domain-definition.ts';
import {
  HypervisorError,
  type FailedDisk,
  portRefusedError,
  type CopyState,
  type DiskCopy,
  type DomainInfo,
  type DomainInspection,
  type DomainState,
} from '#node/hypervisor/hypervisor.ts';
import { GuestAgentError, type AgentCommand, type GuestPort } from '#node/hypervisor/guest-access.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import { answerAgentCommand, FakePorts, type AgentAnswers, type PortServer } from '#node/hypervisor/fake/fake-agent.ts';
import { resolveCopiedDisks, COPYING, type CopiedDisk } from '#node/hypervisor/fake/fake-copies.ts';
import { FakeDisplay } from '#node/hypervisor/fake/fake-display.ts';
import type { TransferredGuest } from '#node/hypervisor/fake/fake-endpoints.ts';
import { definitionOf, FakeHotplug } from '#node/hypervisor/fake/fake-hotplug.ts';
import type { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import { bootBanner, type GuestRecord } from '#node/hypervisor/fake/guest-record.ts';
import type { WatchdogAction } from '#api/domain/hardware.ts';

/** A send that is in progress in this process. */
interface PendingSend {
  finish(): void;
  fail(error: Error): void;
}

/** Actions that the guest takes by itself, for tests. */
export interface GuestControls {
  shutDown(): void;
  crash(message: string): void;
  /** Pauses the guest as an error of these disks would; resume continues it. */
  failDisks(disks: readonly FailedDisk[]): void;
  ignorePowerButton(): void;
  print(text: string): void;
  /** Keeps all devices until releaseDevices is called. */
  holdDevices(): void;
  /** Releases one device that the guest was asked for, or all of them. */
  releaseDevices(deviceId?: string): void;
  /** Writes to the guest's memory, which moves with the guest and is lost when it ends. */
  setMemory(key: string, value: string): void;
  getMemory(key: string): string | undefined;
  /** Writes to the persistent state. Keys that begin with `efi/` are EFI variables. */
  writeState(key: string, value: string): void;
  readState(key: string): string | undefined;
  /** Starts the guest agent. It stops when the guest restarts, and moves with the guest. */
  startAgent(answers?: AgentAnswers): void;
  stopAgent(): void;
  /** True while the guest's file systems are frozen, as the guest itself knows it. */
  readonly isFrozen: boolean;
  /** Opens a port, for the lifetime of this process. */
  listen(port: number, server: PortServer): void;
  stopListening(): void;
  /** Stops resetting the watchdog, which triggers the action of the definition. */
  expireWatchdog(): void;
}

const MAX_CONSOLE_CHARACTERS = 16 * 1024;

export class FakeGuest implements GuestControls {
  readonly record: GuestRecord;
  sending: PendingSend | undefined;
  readonly #states: FakeStates;
  /** Called after each change of the record; `stateChanged` is true if the state is a different one. */
  readonly #onChange: (stateChanged: boolean) => void;
  readonly #hotplug: FakeHotplug;
  #consoles: Set<Duplex> | undefined;
  readonly display = new FakeDisplay(() => this.definition);
  #deviceEvents = 0;
  #ports: FakePorts | undefined;
  readonly #watchdog = new FakeWatchdog();

  constructor(record: GuestRecord, states: FakeStates, onChange: (stateChanged: boolean) => void) {
    this.record = record;
    this.#states = states;
    this.#onChange = onChange;
    this.#hotplug = new FakeHotplug(record, (devicesChanged) => {
      if (devicesChanged) this.#deviceEvents++;
      onChange(devicesChanged);
    });
  }

  get domain(): DomainInfo {
    const { id, name, machine, startedAtMs, current, origin, migration } = this.record;
    const optional = { ...(origin !== undefined && { origin }), ...(migration !== undefined && { migration }) };
    const events = { deviceEvents: this.#deviceEvents, ...this.#watchdog.view };
    return { id, name, machine, startedAtMs, current, ...events, ...optional, ...this.#channelStatus };
  }

  get definition(): DomainDefinition {
    return definitionOf(this.record);
  }

  pause(): void {
    if (this.record.current.state === 'running') this.#setState({ state: 'paused' });
  }

  resume(): void {
    if (this.record.current.state !== 'paused') return;
    const firstTime = this.record.said === '' && this.record.hasBooted !== true;
    this.#setState({ state: 'running' });
    if (firstTime) this.print(bootBanner(this.definition));
    if (this.record.holdsDevices !== true) this.#hotplug.release();
    if (this.record.pressed) this.powerDown();
  }

  powerDown(): void {
    const { current, ignoresPowerButton } = this.record;
    if (current.state === 'paused') {
      this.record.pressed = true;
      this.#onChange(false);
      return;
    }
    if (current.state === 'running' && !ignoresPowerButton) this.shutDown();
  }

  reboot(): void {
    if (this.record.current.state !== 'running') return;
    this.#hotplug.release();
    this.record.memory = [];
    this.#closeChannels();
    this.print(`\r\nRestarting\r\n${bootBanner(this.definition)}`);
  }

  shutDown(): void {
    if (this.record.current.state !== 'ended') this.print('\r\nPower down\r\n');
    this.#end({ state: 'ended', how: 'shutdown' });
  }

  failDisks(failedDisks: readonly FailedDisk[]): void {
    this.#setState({ state: 'paused', why: 'ioError', failedDisks });
  }

  crash(message: string): void {
    this.#end({ state: 'ended', how: 'crashed', message });
  }

  destroy(): void {
    this.#end({ state: 'ended', how: 'destroyed' });
  }

  ignorePowerButton(): void {
    this.record.ignoresPowerButton = true;
    this.#onChange(false);
  }

  print(text: string): void {
    const bytes = Buffer.from(text);
    this.record.said = (this.record.said + bytes.toString('latin1')).slice(-MAX_CONSOLE_CHARACTERS);
    this.#onChange(false);
    for (const console of this.#consoles ?? []) console.push(bytes);
  }

  setMemory(key: string, value: string): void {
    this.#assertRunning();
    this.record.memory = [...new Map([...(this.record.memory ?? []), [key, value]])];
    this.#onChange(false);
  }

  getMemory(key: string): string | undefined {
    return new Map(this.record.memory).get(key);
  }

  writeState(key: string, value: string): void {
    this.#assertRunning();
    this.#states.write(this.#stateDirectory(), key, value);
  }

  readState(key: string): string | undefined {
    return this.#states.read(this.#stateDirectory()).get(key);
  }

  /** Records the next step of a migration, and the state that comes with it. */
  recordMigrationStep(migration: DomainMigration, current: DomainState = this.record.current): void {
    this.record.migration = migration;
    const ends = current.state === 'ended' && this.record.current.state !== 'ended';
    if (ends) this.#end(current);
    else this.#setState(current);
  }

  /** Records a step after which the guest continues as before the migration, or stays paused. */
  continueAfterMigration(migration: DomainMigration): void {
    const wasRunning = this.record.goesOn === true;
    this.record.migration = migration;
    this.record.current = { state: 'paused' };
    if (wasRunning) this.resume();
    else this.#setState({ state: 'paused' });
  }

  restoreTransferred(guest: TransferredGuest): void {
    const { memory, hasBooted, ignoresPowerButton, pressed, letGoOf, holdsDevices, agent } = guest;
    const optional = {
      ...(letGoOf !== undefined && { letGoOf }),
      ...(holdsDevices !== undefined && { holdsDevices }),
      ...(agent !== undefined && { agent }),
    };
    Object.assign(this.record, { memory, hasBooted, ignoresPowerButton, pressed, ...optional });
  }

  startAgent(answers: AgentAnswers = {}): void {
    this.#assertRunning();
    this.record.agent = answers;
    this.record.agentState ??= { frozen: false };
    this.#onChange(true);
  }

  stopAgent(): void {
    delete this.record.agent;
    this.#onChange(true);
  }

  get isFrozen(): boolean {
    return this.record.agentState?.frozen === true;
  }

  listen(port: number, server: PortServer): void {
    (this.#ports ??= new FakePorts()).listen({ port, protocol: 'tcp' }, server);
  }

  stopListening(): void {
    this.#ports?.stop();
  }

  expireWatchdog(): void {
    const action = this.#watchdog.fire(this.definition);
    this.#onChange(true);
    if (action === 'poweroff')
      this.crash('The guest did not reset its watchdog in time, so the watchdog switched it off.');
    else if (action === 'shutdown') this.powerDown();
    else this.reboot();
  }

  openPort(port: GuestPort): Duplex {
    if (this.record.current.state === 'running' && this.#ports !== undefined) return this.#ports.open(port);
    throw portRefusedError(port.port);
  }

  askAgent(command: AgentCommand): unknown {
    const { current, agent, agentState = { frozen: false } } = this.record;
    if (!this.#hasChannel) throw new GuestAgentError('NoChannel', 'the guest has no agent channel');
    if (agent === undefined) throw new GuestAgentError('NotConnected', 'the guest agent is not connected');
    if (current.state !== 'running') {
      const message = `the guest agent did not answer ${command.execute}: the guest is ${current.state}`;
      throw new GuestAgentError('NoAnswer', message);
    }
    this.record.agentState = agentState;
    const answer = answerAgentCommand(command, this.definition, agent, agentState);
    this.#onChange(false);
    return answer;
  }

  writeFrozen(frozen: GuestRecord['frozen']): void {
    if (frozen === undefined) delete this.record.frozen;
    else this.record.frozen = frozen;
    this.#onChange(true);
  }

  get #hasChannel(): boolean {
    return this.definition.devices.some(({ type }) => type === 'agent-channel');
  }

  get #channelStatus(): Pick<DomainInfo, 'agent' | 'frozenUntilMs'> {
    const { agent, frozen, current } = this.record;
    // Most guests have no agent; with thousands of guests, reading each definition would be slow.
    if (current.state === 'ended') return {};
    return {
      ...(agent !== undefined && { agent: 'connected' as const }),
      ...(frozen !== undefined && { frozenUntilMs: frozen.untilMs }),
    };
  }

  #closeChannels(): void {
    delete this.record.agent;
    delete this.record.agentState;
    this.#ports?.stop();
  }

  get inspection(): DomainInspection {
    const hasEnded = this.record.current.state === 'ended';
    return { definition: this.definition, unplugging: hasEnded ? [] : this.#hotplug.unplugging };
  }

  plug(device: PluggableDevice): void {
    this.#hotplug.plug(device);
  }

  unplug(deviceId: string): void {
    this.#hotplug.unplug(deviceId);
  }

  setLink(deviceId: string, link: 'up' | 'down'): void {
    this.#hotplug.setLink(deviceId, link);
  }

  holdDevices(): void {
    this.record.holdsDevices = true;
    this.#onChange(false);
  }

  releaseDevices(deviceId?: string): void {
    this.#hotplug.release(deviceId);
  }

  /** `onCopy` is called before the listeners, and not if the copies exist already. */
  startCopies(
    copies: readonly DiskCopy[],
    { hold, onCopy }: { hold: boolean; onCopy: (disks: readonly CopiedDisk[]) => void },
  ): void {
    const { name, copies: known = [] } = this.record;
    const existing = copies.filter(({ copyId }) => known.some((copy) => copy.copyId === copyId));
    if (existing.length === copies.length) return;
    const [first] = existing;
    if (first !== undefined) {
      throw new HypervisorError(
        `Cannot copy disks of domain "${name}": copy "${first.copyId}" exists already, others of the set do not`,
      );
    }
    onCopy(resolveCopiedDisks(this.definition, copies));
    const state: CopyState = hold ? COPYING : { state: 'done' };
    this.record.copies = [...known, ...copies.map((copy) => ({ ...copy, state }))];
    this.#onChange(!hold);
  }

  copyState(copyId: string): CopyState | undefined {
    return this.record.copies?.find((copy) => copy.copyId === copyId)?.state;
  }

  endCopy(copyId: string): void {
    const { copies = [] } = this.record;
    const remaining = copies.filter((copy) => copy.copyId !== copyId);
    if (remaining.length === copies.length) return;
    this.record.copies = remaining;
    this.#onChange(false);
  }

  /** Ends all running copies with this state. */
  finishCopies(end: CopyState): void {
    if (this.#endRunningCopies(end)) this.#onChange(true);
  }

  openConsole(): Duplex {
    const console: Duplex = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        if (this.record.current.state === 'running') this.print(chunk.toString().replaceAll('\r', '\r\n'));
        done();
      },
      destroy: (error, done) => {
        this.#consoles?.delete(console);
        done(error);
      },
    });
    (this.#consoles ??= new Set()).add(console);
    return console;
  }

  /** Drops everything that belongs to the process that held the host. The guest does not notice. */
  dropConnections(): void {
    this.sending?.fail(new HypervisorError(`Cannot send domain "${this.record.name}": the host was lost`));
    this.#hotplug.forgetRequests();
    for (const open of [...(this.#consoles ?? []), ...this.display.viewers]) open.destroy();
    this.#consoles = undefined;
  }

  #end(ended: DomainState): void {
    if (this.record.current.state === 'ended') return;
    this.sending?.fail(new HypervisorError(`Cannot send domain "${this.record.name}": the guest ended`));
    this.#endRunningCopies({ state: 'failed', message: 'the guest ended before the copy was complete' });
    this.#closeChannels();
    delete this.record.frozen;
    this.#setState(ended);
    for (const open of [...(this.#consoles ?? []), ...this.display.viewers]) {
      open.push(null);
      open.end();
    }
    this.#consoles = undefined;
  }

  #endRunningCopies(end: CopyState): boolean {
    const unfinished = (this.record.copies ?? []).filter(({ state }) => state.state === 'copying');
    for (const copy of unfinished) copy.state = end;
    return unfinished.length > 0;
  }

  #assertRunning(): void {
    const { name, current } = this.record;
    invariant(current.state === 'running', `only a running guest acts; "${name}" is ${current.state}`);
  }

  #stateDirectory(): string {
    const { name, state } = this.definition;
    invariant(state !== undefined, `"${name}" has persistent state`);
    return state.directory;
  }

  #setState(state: DomainState): void {
    this.record.current = state;
    this.#onChange(true);
  }
}

/** The watchdog of a simulated guest, which fires when a test triggers it. */
class FakeWatchdog {
  #fired: DomainInfo['watchdog'];

  get view(): Pick<DomainInfo, 'watchdog'> {
    return this.#fired === undefined ? {} : { watchdog: this.#fired };
  }

  /** Counts the event and returns the action to take. */
  fire({ name, devices }: DomainDefinition): WatchdogAction {
    const [watchdog] = devices.flatMap((device) => (device.type === 'watchdog' ? device : []));
    invariant(watchdog !== undefined, `"${name}" has a watchdog`);
    this.#fired = { times: (this.#fired?.times ?? 0) + 1, action: watchdog.action };
    return watchdog.action;
  }
}
