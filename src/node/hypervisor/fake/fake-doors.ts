/**
 * Endpoints at which simulated guests arrive. An endpoint is a name in this process or, if the host has a directory, a
 * directory below it: then guests can also come from other processes of this machine. An endpoint serves one guest and
 * one migration, from `receive` until the guest has arrived or the migration is aborted.
 *
 * The guests on both sides of an endpoint must never run at the same time; watchRunning asserts that.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, isAbsolute, join } from 'node:path';
import { randomSuffix } from '#lib/ids.ts';
import { invariant } from '#lib/invariant.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { AgentAnswers } from './fake-agent.ts';

/** Everything that moves with a guest besides its definition. Stored as JSON. */
export interface Luggage {
  /** The part of the definition that must be the same on both sides. */
  readonly machine: string;
  readonly memory: readonly Entry[];
  readonly hasBooted: boolean;
  /** Persistent state, except for EFI variables, which are in TransferredState. */
  readonly kept: readonly Entry[];
  /** By device id. */
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

/** Transferred guests by endpoint, for endpoints that are names. */
const behind = new Map<string, string | undefined>();
/** Listeners of this process that wait until an endpoint closes. */
const listeners = new Map<string, Set<() => void>>();
/** The host on which the guest of an endpoint runs. */
const runners = new Map<string, string>();

/** Opens an endpoint in the directory of the host, or in memory if there is none. */
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

/** Closes the endpoint and drops the guest that was sent to it. Does nothing if it is closed. */
export function closeDoor(door: string): void {
  behind.delete(door);
  if (isPath(door)) rmSync(door, { recursive: true, force: true });
  for (const listener of listeners.get(door) ?? []) listener();
  listeners.delete(door);
}

export function isOpen(door: string): boolean {
  return isPath(door) ? existsSync(door) : behind.has(door);
}

/** Calls the listener once if this process closes the endpoint. Returns a function that removes the listener. */
export function onClosed(door: string, listener: () => void): () => void {
  const all = listeners.get(door) ?? new Set();
  listeners.set(door, all.add(listener));
  return () => {
    all.delete(listener);
    if (all.size === 0) listeners.delete(door);
  };
}

/** Sends a guest to an endpoint; throws if the endpoint is closed. */
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

/** Returns the guest that was sent to the endpoint, or undefined if none has arrived. */
export function collect(door: string): Luggage | undefined {
  const text = isPath(door) ? readIfThere(fileBehind(door)) : behind.get(door);
  return text === undefined ? undefined : (JSON.parse(text) as Luggage);
}

/** Closes endpoints of this directory that a killed process opened but did not record. */
export function closeUnknownDoors(dir: string, known: ReadonlySet<string>): void {
  const doors = join(dir, DOORS);
  for (const name of existsSync(doors) ? readdirSync(doors) : []) {
    if (!known.has(join(doors, name))) closeDoor(join(doors, name));
  }
}

/** Called at each change before it is saved. Fails if the guest runs on both sides of its endpoint. */
export function watchRunning(door: string, host: string, isRunning: boolean): void {
  const runner = runners.get(door);
  if (isRunning) {
    invariant(runner === undefined || runner === host, `a guest runs on one host at a time: ${door}`);
    runners.set(door, host);
  } else if (runner === host) {
    runners.delete(door);
  }
}

export function nobodyThere(door: string): HypervisorError {
  return new HypervisorError(`Cannot send a guest: no guest waits at "${door}"`);
}

/** Endpoints come from another node, so only paths of the form that openFakeEndpoint creates are used. */
function isPath(door: string): boolean {
  return isAbsolute(door) && DOOR.test(basename(door));
}

function fileBehind(door: string): string {
  return join(door, 'luggage');
}

function readIfThere(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
