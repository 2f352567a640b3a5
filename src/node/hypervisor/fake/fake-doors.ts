/**
 * Where simulated guests come in. A door is a name in this process, or, where the host has a directory, a directory of
 * its own there: then guests come from other processes of this machine too. A door is for one guest and one migration,
 * from `receive` until the guest has arrived or is given up.
 *
 * Whoever goes through a door is watched for good: the guests on both sides must never run at the same time.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, isAbsolute, join } from 'node:path';
import { randomSuffix } from '#lib/ids.ts';
import { invariant } from '#lib/invariant.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { AgentAnswers } from './fake-agent.ts';

/** What a guest takes with it: all that is not in its definition. */
export interface Luggage {
  /** What of its definition must be the same on both sides. */
  readonly machine: string;
  readonly memory: readonly Entry[];
  readonly hasBooted: boolean;
  /** Of its persistent state; EFI variables go another way (Sent). */
  readonly kept: readonly Entry[];
  /** By id of the device. */
  readonly disks: readonly Entry[];
  readonly ignoresPowerButton: boolean;
  readonly pressed: boolean;
  readonly letGoOf?: readonly string[];
  readonly holdsDevices?: boolean;
  readonly agent?: AgentAnswers;
}

export type Entry = readonly [key: string, value: string];

const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
const DOORS = 'doors';
const DOOR = /^door-[a-z0-9]{16}$/;
const RANDOM_LENGTH = 16;

/** What lies behind doors that are names. */
const behind = new Map<string, string | undefined>();
/** Those of this process that wait for it to close. */
const listeners = new Map<string, Set<() => void>>();
/** The host on which the guest that went or goes through this door runs. */
const runners = new Map<string, string>();

/** `dir`: of the host. */
export function openDoor(dir: string | undefined): string {
  const name = `door-${randomSuffix(RANDOM_LENGTH)}`;
  if (dir === undefined) {
    behind.set(name, undefined);
    return name;
  }
  const path = join(dir, DOORS, name);
  mkdirSync(path, { recursive: true, mode: PRIVATE_DIR });
  return path;
}

/** Fine where it is closed. What lies behind it goes. */
export function closeDoor(door: string): void {
  behind.delete(door);
  if (isPath(door)) rmSync(door, { recursive: true, force: true });
  for (const listener of listeners.get(door) ?? []) listener();
  listeners.delete(door);
}

export function isOpen(door: string): boolean {
  return isPath(door) ? existsSync(door) : behind.has(door);
}

/** Calls once when it closes, as far as that happens in this process; the result ends it. */
export function onClosed(door: string, listener: () => void): () => void {
  const all = listeners.get(door) ?? new Set();
  listeners.set(door, all.add(listener));
  return () => {
    all.delete(listener);
    if (all.size === 0) listeners.delete(door);
  };
}

/** Throws where nobody waits there. */
export function deliver(door: string, luggage: Luggage): void {
  if (!isOpen(door)) throw nobodyThere(door);
  const text = JSON.stringify(luggage);
  if (!isPath(door)) {
    behind.set(door, text);
    return;
  }
  const file = fileBehind(door);
  writeFileSync(`${file}.new`, text, { mode: PRIVATE_FILE });
  renameSync(`${file}.new`, file);
}

/** Undefined while nothing has come. */
export function collect(door: string): Luggage | undefined {
  const text = isPath(door) ? readIfThere(fileBehind(door)) : behind.get(door);
  return text === undefined ? undefined : (JSON.parse(text) as Luggage);
}

/** Closes doors of this directory that a killed process left open before anybody knew of them. */
export function closeUnknownDoors(dir: string, known: ReadonlySet<string>): void {
  const doors = join(dir, DOORS);
  for (const name of existsSync(doors) ? readdirSync(doors) : []) {
    if (!known.has(join(doors, name))) closeDoor(join(doors, name));
  }
}

/** Told at each change, before it is written down. Fails loudly where the guest runs on both sides of its door. */
export function watchRunning(door: string, host: string, isRunning: boolean): void {
  const runner = runners.get(door);
  if (isRunning) {
    invariant(runner === undefined || runner === host, `a guest runs on two hosts at the same time: ${door}`);
    runners.set(door, host);
  } else if (runner === host) {
    runners.delete(door);
  }
}

export function nobodyThere(door: string): HypervisorError {
  return new HypervisorError(`Cannot send a guest: nobody waits for it at "${door}"`);
}

/** Doors come from another node: only what openDoor made is looked at. */
function isPath(door: string): boolean {
  return isAbsolute(door) && DOOR.test(basename(door));
}

function fileBehind(door: string): string {
  return join(door, 'luggage');
}

function readIfThere(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
