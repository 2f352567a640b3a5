/**
 * One simulated guest. It says a banner at each boot, gives back what its console is told, and shuts down when the power
 * button is pressed, unless told to ignore that. A paused guest does nothing; a button that was pressed meanwhile takes
 * effect when it goes on. Small while nothing happens: no timers, the definition as text, buffers only for open consoles.
 */
import { Duplex } from 'node:stream';
import type { DomainDefinition, PluggableDevice } from '#node/definition/domain-definition.ts';
import {
  HypervisorError,
  type CopyState,
  type DiskCopy,
  type Domain,
  type DomainInspection,
  type DomainState,
} from '../hypervisor.ts';
import { copiedDisks, COPYING, type CopiedDisk, type FakeCopy } from './fake-copies.ts';
import { definitionOf, FakeHotplug } from './fake-hotplug.ts';

/** All that is kept of a guest, also on disk. */
export interface GuestRecord {
  readonly id: string;
  readonly name: string;
  readonly machine: string;
  readonly startedAtMs: number;
  readonly origin?: DomainDefinition['origin'];
  /** JSON of the DomainDefinition as it is now: a third of the memory of the parsed one. */
  definition: string;
  current: DomainState;
  /** What the serial console said, the last SAID_MAX characters, one for each byte. */
  said: string;
  ignoresPowerButton: boolean;
  /** The power button was pressed while the guest was paused. */
  pressed: boolean;
  /** Of its disks; those that have ended too, until they are forgotten. */
  copies?: FakeCopy[];
  /** Ids of devices that the guest was asked to let go, and has not. */
  letGoOf?: readonly string[];
  /** It does not let go until it is told to. */
  holdsDevices?: boolean;
}

const SAID_MAX = 16 * 1024;

export function newGuest(
  definition: DomainDefinition,
  { startedAtMs, paused }: { startedAtMs: number; paused: boolean },
): GuestRecord {
  const { id, name, machine, origin } = definition;
  return {
    id,
    name,
    machine,
    startedAtMs,
    ...(origin !== undefined && { origin }),
    definition: JSON.stringify(definition),
    current: { state: paused ? 'paused' : 'running' },
    said: paused ? '' : banner(definition),
    ignoresPowerButton: false,
    pressed: false,
  };
}

export class FakeGuest {
  readonly record: GuestRecord;
  /** After each change of the record; `stateChanged` when the state is another one. */
  readonly #changed: (stateChanged: boolean) => void;
  readonly #hotplug: FakeHotplug;
  #consoles: Set<Duplex> | undefined;
  #deviceEvents = 0;

  constructor(record: GuestRecord, changed: (stateChanged: boolean) => void) {
    this.record = record;
    this.#changed = changed;
    this.#hotplug = new FakeHotplug(record, (devicesChanged) => {
      if (devicesChanged) this.#deviceEvents++;
      changed(devicesChanged);
    });
  }

  get domain(): Domain {
    const { id, name, machine, startedAtMs, current, origin } = this.record;
    const from = origin === undefined ? {} : { origin };
    return { id, name, machine, startedAtMs, current, deviceEvents: this.#deviceEvents, ...from };
  }

  get definition(): DomainDefinition {
    return definitionOf(this.record);
  }

  pause(): void {
    if (this.record.current.state === 'running') this.#become({ state: 'paused' });
  }

  resume(): void {
    if (this.record.current.state !== 'paused') return;
    const firstTime = this.record.said === '';
    this.#become({ state: 'running' });
    if (firstTime) this.say(banner(this.definition));
    if (this.record.holdsDevices !== true) this.#hotplug.letGo();
    if (this.record.pressed) this.powerDown();
  }

  powerDown(): void {
    const { current, ignoresPowerButton } = this.record;
    if (current.state === 'paused') {
      this.record.pressed = true;
      this.#changed(false);
      return;
    }
    if (current.state === 'running' && !ignoresPowerButton) this.shutDown();
  }

  reboot(): void {
    if (this.record.current.state !== 'running') return;
    this.#hotplug.letGo();
    this.say(`\r\nRestarting\r\n${banner(this.definition)}`);
  }

  shutDown(): void {
    if (this.record.current.state !== 'ended') this.say('\r\nPower down\r\n');
    this.#end({ state: 'ended', how: 'shutdown' });
  }

  crash(message: string): void {
    this.#end({ state: 'ended', how: 'crashed', message });
  }

  destroy(): void {
    this.#end({ state: 'ended', how: 'destroyed' });
  }

  ignorePowerButton(): void {
    this.record.ignoresPowerButton = true;
    this.#changed(false);
  }

  say(text: string): void {
    const bytes = Buffer.from(text);
    this.record.said = (this.record.said + bytes.toString('latin1')).slice(-SAID_MAX);
    this.#changed(false);
    for (const console of this.#consoles ?? []) console.push(bytes);
  }

  get inspection(): DomainInspection {
    const hasEnded = this.record.current.state === 'ended';
    return { definition: this.definition, leaving: hasEnded ? [] : this.#hotplug.leaving };
  }

  plug(device: PluggableDevice): void {
    this.#hotplug.plug(device);
  }

  unplug(deviceId: string): void {
    this.#hotplug.unplug(deviceId);
  }

  holdDevices(): void {
    this.record.holdsDevices = true;
    this.#changed(false);
  }

  letGo(deviceId?: string): void {
    this.#hotplug.letGo(deviceId);
  }

  /** `copied` is called before anybody is told, and not at all where they have begun already. */
  startCopies(
    copies: readonly DiskCopy[],
    { hold, copied }: { hold: boolean; copied: (disks: readonly CopiedDisk[]) => void },
  ): void {
    const { name, copies: known = [] } = this.record;
    const begun = copies.filter(({ copyId }) => known.some((copy) => copy.copyId === copyId));
    if (begun.length === copies.length) return;
    const [first] = begun;
    if (first !== undefined) {
      throw new HypervisorError(
        `Cannot copy disks of domain "${name}": copy "${first.copyId}" has begun already, others have not`,
      );
    }
    copied(copiedDisks(this.definition, copies));
    const state: CopyState = hold ? COPYING : { state: 'done' };
    this.record.copies = [...known, ...copies.map((copy) => ({ ...copy, state }))];
    this.#changed(!hold);
  }

  copyState(copyId: string): CopyState | undefined {
    return this.record.copies?.find((copy) => copy.copyId === copyId)?.state;
  }

  endCopy(copyId: string): void {
    const { copies = [] } = this.record;
    const left = copies.filter((copy) => copy.copyId !== copyId);
    if (left.length === copies.length) return;
    this.record.copies = left;
    this.#changed(false);
  }

  /** All that go on come to this end. */
  finishCopies(end: CopyState): void {
    if (this.#settleCopies(end)) this.#changed(true);
  }

  openConsole(): Duplex {
    const console: Duplex = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        if (this.record.current.state === 'running') this.say(chunk.toString().replaceAll('\r', '\r\n'));
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

  /** The process that looks at it is gone; the guest does not notice. */
  loseProcess(): void {
    this.#hotplug.forget();
    for (const console of this.#consoles ?? []) console.destroy();
    this.#consoles = undefined;
  }

  #end(ended: DomainState): void {
    if (this.record.current.state === 'ended') return;
    this.#settleCopies({ state: 'failed', message: 'the guest ended before the copy was complete' });
    this.#become(ended);
    for (const console of this.#consoles ?? []) {
      console.push(null);
      console.end();
    }
    this.#consoles = undefined;
  }

  #settleCopies(end: CopyState): boolean {
    const unfinished = (this.record.copies ?? []).filter(({ state }) => state.state === 'copying');
    for (const copy of unfinished) copy.state = end;
    return unfinished.length > 0;
  }

  #become(state: DomainState): void {
    this.record.current = state;
    this.#changed(true);
  }
}

function banner({ firmware, machine, name }: DomainDefinition): string {
  return `Simulated guest ${name} on ${machine}, uuid ${firmware.uuid}\r\nlogin: `;
}
