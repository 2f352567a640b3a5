/**
 * The server of a plane in this process: the engine's core with its controllers, and our own parts beside it. It can
 * crash at any moment: from then on no request is answered, and only what the store has accepted remains.
 */
import assert from 'node:assert/strict';
import type { FakeClock } from '#lib/testing/fake-clock.ts';
import type { ApiHandler } from '#engine/request/request.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { startEventExpiry } from '#engine/expiry/event-expiry.ts';
import type { Journal } from '#engine/store/journal.ts';
import { LogStore, type LogStoreOptions } from '#engine/store/log-store.ts';
import { silentLog } from '#lib/log.ts';
import type { GuestNetworkOptions } from '#plane/embedded/guest-network.ts';
import { startPlaneComponents, type PlaneComponents } from '#plane/embedded/plane-components.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { CuttingStore } from '#test/support/crash-points.ts';
import { Connections } from '#test/support/connections.ts';
import { RecordingConnections } from '#test/support/recording-connections.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

/** Collections that no decision depends on: their writes are not crash points. */
const UNCOUNTED_COLLECTIONS = ['events', 'leases.coordination.k8s.io'];

export interface VmPlaneServer {
  readonly api: TestApi;
  readonly store: CuttingStore;
  readonly parts: PlaneComponents;
  readonly lists: RecordingConnections;
  /** Crashes the server: requests in progress fail. */
  crash(): Promise<void>;
}

export interface VmPlaneServerOptions {
  /** The stored data, which outlives the server. */
  readonly journal: Journal;
  readonly storeOptions?: LogStoreOptions | undefined;
  /** The time to keep Events; by default they stay. */
  readonly eventTtlMs?: number | undefined;
  readonly guestNetwork?: GuestNetworkOptions | undefined;
  readonly clock: FakeClock;
  readonly nodes: NodeConnections;
}

export async function startVmPlaneServer(options: VmPlaneServerOptions): Promise<VmPlaneServer> {
  const { journal, clock, nodes, eventTtlMs: ttlMs } = options;
  const opened = await LogStore.open(journal, options.storeOptions);
  const store = new CuttingStore(opened, { uncounted: UNCOUNTED_COLLECTIONS });
  const endExpiry = ttlMs === undefined ? () => {} : startEventExpiry({ store, clock, log: silentLog, ttlMs });
  const services = new LocalServices();
  const connections = new Connections();
  const gate = (handler: ApiHandler) => connections.wrap(handler);
  const api = await advanceUntil(clock, startTestApi({ store, clock, services, wrapHandler: gate }));
  const { handler } = api.core;
  const lists = new RecordingConnections(nodes);
  const starting = startPlaneComponents({
    handler,
    services,
    nodes: () => nodes,
    hosts: () => lists,
    metrics: api.core.metrics,
    guestNetwork: options.guestNetwork,
    clock,
    log: silentLog,
  });
  const parts = await advanceUntil(clock, starting);
  return {
    api,
    store,
    parts,
    lists,
    async crash() {
      connections.breakAll();
      await parts.stop();
      endExpiry();
      await api.stop();
    },
  };
}

/**
 * Waits for the promise. If it takes longer than `turns` turns of the event loop, the clock advances, because the work
 * may wait for a retry. Some of it may also wait for a disk, which does not depend on this clock, so after a while real
 * time passes, too. `where` names what did not end, for the message of a failed test.
 */
export async function advanceUntil<T>(
  clock: FakeClock,
  waited: Promise<T>,
  { turns = 0, where = () => '' }: { readonly turns?: number; readonly where?: () => string } = {},
): Promise<T> {
  let isOver = false;
  const ended = waited.finally(() => (isOver = true));
  ended.catch(() => {});
  for (let turn = 0; turn < turns && !isOver; turn++) await new Promise((resolve) => setImmediate(resolve));
  for (let moment = 0; !isOver; moment++) {
    assert.ok(moment < MAX_MOMENTS, `the wait does not end${where()}`);
    await clock.advance(MOMENT_MS);
    if (moment > QUICK_MOMENTS) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return await ended;
}

const MOMENT_MS = 20;
const MAX_MOMENTS = 5000;
/** More than any work needs that waits for nothing outside this process. */
const QUICK_MOMENTS = 1000;
