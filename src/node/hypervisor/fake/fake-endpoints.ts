/**
 * Endpoints at which simulated guests arrive. An endpoint is a name in this process or, if the host has a directory, a
 * directory below it: then guests can also come from other processes of this machine. An endpoint serves one guest and
 * one migration, from `receive` until the guest has arrived or the migration is aborted.
 *
 * The guests on both sides of an endpoint must never run at the same time; assertRunsOnOneHost checks that.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, isAbsolute, join } from 'node:path';
import { randomSuffix } from '#lib/ids.ts';
import { invariant } from '#lib/invariant.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { AgentAnswers } from '#node/hypervisor/fake/fake-agent.ts';

/** Everything that moves with a guest besides its definition. Stored as JSON. */
export interface TransferredGuest {
  /** The part of the definition that must be the same on both sides. */
  readonly machine: string;
  readonly memory: readonly StateEntry[];
  readonly hasBooted: boolean;
  /** Persistent state, except for EFI variables, which are in TransferredState. */
  readonly kept: readonly StateEntry[];
  /** By device id. */
  readonly disks: readonly StateEntry[];
  readonly ignoresPowerButton: boolean;
  readonly pressed: boolean;
  readonly letGoOf?: readonly string[];
  readonly holdsDevices?: boolean;
  readonly agent?: AgentAnswers;
}

export type StateEntry = readonly [key: string, value: string];

const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
const ENDPOINTS_DIRECTORY = 'doors';
const ENDPOINT_NAME = /^door-[a-z0-9]{16}$/;
const RANDOM_LENGTH = 16;

/** Transferred guests by endpoint, for endpoints that are names. */
const transferredGuests = new Map<string, string | undefined>();
/** Listeners of this process that wait until an endpoint closes. */
const listeners = new Map<string, Set<() => void>>();
/** The host on which the guest of an endpoint runs. */
const runningHosts = new Map<string, string>();

/** Opens an endpoint in the directory of the host, or in memory if there is none. */
export function openFakeEndpoint(dir: string | undefined): string {
  const name = `door-${randomSuffix(RANDOM_LENGTH)}`;
  if (dir === undefined) {
    transferredGuests.set(name, undefined);
    return name;
  }
  const path = join(dir, ENDPOINTS_DIRECTORY, name);
  mkdirSync(path, { recursive: true, mode: PRIVATE_DIR });
  return path;
}

/** Closes the endpoint and drops the guest that was sent to it. Does nothing if it is closed. */
export function closeFakeEndpoint(endpoint: string): void {
  transferredGuests.delete(endpoint);
  if (isEndpointPath(endpoint)) rmSync(endpoint, { recursive: true, force: true });
  for (const listener of listeners.get(endpoint) ?? []) listener();
  listeners.delete(endpoint);
}

export function isEndpointOpen(endpoint: string): boolean {
  return isEndpointPath(endpoint) ? existsSync(endpoint) : transferredGuests.has(endpoint);
}

/** Calls the listener once if this process closes the endpoint. Returns a function that removes the listener. */
export function onEndpointClosed(endpoint: string, listener: () => void): () => void {
  const all = listeners.get(endpoint) ?? new Set();
  listeners.set(endpoint, all.add(listener));
  return () => {
    all.delete(listener);
    if (all.size === 0) listeners.delete(endpoint);
  };
}

/** Sends a guest to an endpoint; throws if the endpoint is closed. */
export function sendToEndpoint(endpoint: string, guest: TransferredGuest): void {
  if (!isEndpointOpen(endpoint)) throw closedEndpointError(endpoint);
  const text = JSON.stringify(guest);
  if (!isEndpointPath(endpoint)) {
    transferredGuests.set(endpoint, text);
    return;
  }
  const file = transferFile(endpoint);
  writeFileSync(`${file}.new`, text, { mode: PRIVATE_FILE });
  renameSync(`${file}.new`, file);
}

/** Returns the guest that was sent to the endpoint, or undefined if none has arrived. */
export function readFromEndpoint(endpoint: string): TransferredGuest | undefined {
  const text = isEndpointPath(endpoint) ? readIfExists(transferFile(endpoint)) : transferredGuests.get(endpoint);
  return text === undefined ? undefined : (JSON.parse(text) as TransferredGuest);
}

/** Closes endpoints of this directory that a killed process opened but did not record. */
export function closeUnknownEndpoints(dir: string, known: ReadonlySet<string>): void {
  const directory = join(dir, ENDPOINTS_DIRECTORY);
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    if (!known.has(join(directory, name))) closeFakeEndpoint(join(directory, name));
  }
}

/** Called at each change before it is saved. Fails if the guest runs on both sides of its endpoint. */
export function assertRunsOnOneHost(endpoint: string, host: string, isRunning: boolean): void {
  const runner = runningHosts.get(endpoint);
  if (isRunning) {
    invariant(runner === undefined || runner === host, `a guest runs on one host at a time: ${endpoint}`);
    runningHosts.set(endpoint, host);
  } else if (runner === host) {
    runningHosts.delete(endpoint);
  }
}

export function closedEndpointError(endpoint: string): HypervisorError {
  return new HypervisorError(`Cannot send a guest: no guest waits at "${endpoint}"`);
}

/** Endpoints come from another node, so only paths of the form that openFakeEndpoint creates are used. */
function isEndpointPath(endpoint: string): boolean {
  return isAbsolute(endpoint) && ENDPOINT_NAME.test(basename(endpoint));
}

function transferFile(endpoint: string): string {
  return join(endpoint, 'luggage');
}

function readIfExists(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
