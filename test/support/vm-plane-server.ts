/**
 * The server of a plane in this process: the engine's core with its controllers, and our own parts beside it. It can be
 * lost at any moment: from then on nobody gets an answer, and only what the store had taken is left.
 */
import assert from 'node:assert/strict';
import type { FakeClock } from '#client/testing/fake-clock.ts';
import type { ApiHandler } from '#engine/request.ts';
import { LocalServices } from '#engine/services.ts';
import { LogStore } from '#engine/store/log-store.ts';
import type { MemoryJournal } from '#engine/store/memory/memory-journal.ts';
import { silentLog } from '#lib/log.ts';
import { startOwnParts, type OwnParts } from '#plane/embedded/own-parts.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { CuttingStore } from '#test/support/crash-points.ts';
import { Connections } from '#test/support/connections.ts';
import { WatchedLists } from '#test/support/watched-lists.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

/** What nobody decides anything on: these writes are no points at which it is worth to be lost. */
const TOLD = ['events', 'leases.coordination.k8s.io'];

export interface VmPlaneServer {
  readonly api: TestApi;
  readonly store: CuttingStore;
  readonly parts: OwnParts;
  readonly lists: WatchedLists;
  /** Whoever waits for an answer hears that there is none. */
  lose(): Promise<void>;
}

export interface VmPlaneServerOptions {
  /** What it starts with, and leaves behind. */
  readonly journal: MemoryJournal;
  readonly clock: FakeClock;
  readonly nodes: NodeConnections;
}

export async function startVmPlaneServer({ journal, clock, nodes }: VmPlaneServerOptions): Promise<VmPlaneServer> {
  const store = new CuttingStore(await LogStore.open(journal), { free: TOLD });
  const services = new LocalServices();
  const connections = new Connections();
  const gate = (handler: ApiHandler) => connections.through(handler);
  const api = await passingTime(clock, startTestApi({ store, clock, services, gate }));
  const { handler } = api.core;
  const lists = new WatchedLists(nodes);
  const starting = startOwnParts({ handler, services, nodes: () => nodes, hosts: () => lists, clock, log: silentLog });
  const parts = await passingTime(clock, starting);
  return {
    api,
    store,
    parts,
    lists,
    async lose() {
      connections.lose();
      await parts.stop();
      await api.stop();
    },
  };
}

/**
 * What is waited for may have to try again after a moment: time passes when it takes longer than so many turns. Some of it
 * may also wait for a disk, which knows nothing of this clock: after a while real time is let pass, too. `where` tells the
 * reader of a failed test what did not end.
 */
export async function passingTime<T>(
  clock: FakeClock,
  waited: Promise<T>,
  { turns = 0, where = () => '' }: { readonly turns?: number; readonly where?: () => string } = {},
): Promise<T> {
  let over = false;
  const ended = waited.finally(() => (over = true));
  ended.catch(() => {});
  for (let turn = 0; turn < turns && !over; turn++) await new Promise((resolve) => setImmediate(resolve));
  for (let moment = 0; !over; moment++) {
    assert.ok(moment < MAX_MOMENTS, `it does not come to its end${where()}`);
    await clock.advance(MOMENT_MS);
    if (moment > QUICK_MOMENTS) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return await ended;
}

const MOMENT_MS = 20;
const MAX_MOMENTS = 5000;
/** More than anything takes that waits for nobody but us. */
const QUICK_MOMENTS = 1000;
