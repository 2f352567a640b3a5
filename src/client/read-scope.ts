/**
 * Notes which kinds are read while one piece of work runs, from a cache or from the server. The runtime uses it to check
 * that a controller is woken by whatever its decisions read (runtime/decision-reads.ts).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ResourceType } from '#kube/meta.ts';

export type ReadListener = (type: ResourceType) => void;

const listeners = new AsyncLocalStorage<ReadListener>();

/** Tells the listener of the work that runs now, if there is one. Called by informers and clients for each read. */
export function noteRead(type: ResourceType): void {
  listeners.getStore()?.(type);
}

/** Runs the work and calls the listener for each read in it. */
export function listenToReads<T>(listener: ReadListener, work: () => T): T {
  return listeners.run(listener, work);
}
