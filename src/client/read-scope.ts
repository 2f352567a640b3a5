/**
 * Records which kinds are read during an operation, from a cache or from the server. The runtime uses it to check that
 * a controller watches every kind that its decisions read (runtime/decision-reads.ts).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ResourceType } from '#kube/meta.ts';

type ReadListener = (type: ResourceType) => void;

const listeners = new AsyncLocalStorage<ReadListener>();

/** Calls the listener of the current operation, if there is one. Informers and clients call this for each read. */
export function recordRead(type: ResourceType): void {
  listeners.getStore()?.(type);
}

/**
 * Runs an operation whose reads are not part of a decision, for example those that find the address of a server. A call
 * that fails is repeated, so a change of the address needs no trigger.
 */
export function ignoreReads<T>(work: () => T): T {
  return listeners.exit(work);
}

/** Runs an operation and calls the listener for each read in it. */
export function observeReads<T>(listener: ReadListener, work: () => T): T {
  return listeners.run(listener, work);
}
