/** kill -9 of the whole program under load, many times on one data directory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { TransportError } from '#client/transport.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import type { ResourceType } from '#kube/meta.ts';
import { Ledger } from '#test/crash/ledger.ts';
import { ResumingWatch, type Seen } from '#test/crash/resuming-watch.ts';
import { installTickets, TICKETS, tokenOf } from '#test/crash/tickets.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { ROOT_CA } from '#test/support/kinds.ts';
import { Writer } from '#test/crash/writer.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import { spawnServer, startServer, createTemporaryDir, openTransport } from '#test/support/server-process.ts';

const KILLS = FULL_RUN ? 50 : 10;
/** After this many kills, one more kill during the start, before the server has printed `ready`. */
const KILL_START_EVERY = 8;
const START_SPREAD_MS = 400;
const WRITERS_PER_KIND = 16;
const CONNECTIONS = 4;
/** Each life of the server acknowledges at least this many writes, plus a random number. All must fit into its history. */
const LEAST_WRITES = 220;
const MORE_WRITES = 160;
/** The kill then comes after a random part of this time: during a commit, an answer or a checkpoint. */
const KILL_SPREAD_MS = 25;

const NAMESPACE = 'default';
const KINDS = [CONFIG_MAPS, TICKETS];

/** Lets clients through while it is open; clients that come while it is closed wait for the next life. */
class Gate {
  #open = false;
  #waiting: (() => void)[] = [];

  get isOpen(): boolean {
    return this.#open;
  }

  open(): void {
    this.#open = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  close(): void {
    this.#open = false;
  }

  passed(): Promise<void> {
    return this.#open ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** Runs all writers until the server is killed; resolves when each of them has noticed. */
async function loadUntilKilled(writers: readonly Writer[], gate: Gate, acknowledged: () => void): Promise<void> {
  await Promise.all(
    writers.map(async (writer) => {
      while (gate.isOpen) {
        try {
          await writer.step();
        } catch (error) {
          // A connection may break only because this test broke it.
          if (gate.isOpen || !(error instanceof TransportError)) throw error;
          return;
        }
        acknowledged();
      }
    }),
  );
}

/** Waits for the root CA, which a controller writes once, so that all later writes are those of the test. */
async function waitForRootCa(client: Client): Promise<void> {
  const initial = { sendInitialEvents: true, allowWatchBookmarks: true };
  for await (const { object } of client.watch(CONFIG_MAPS, { namespace: NAMESPACE, ...initial })) {
    if (object.metadata.name === ROOT_CA) return;
  }
}

/** Watches from the beginning of the load to its end: the history as the server has it. */
async function fullHistory(client: Client, type: ResourceType, since: string, last: string): Promise<Seen[]> {
  const events: Seen[] = [];
  for await (const event of client.watch(type, { namespace: NAMESPACE, resourceVersion: since })) {
    const { name, resourceVersion } = event.object.metadata;
    events.push({ type: event.type, name, token: tokenOf(event.object), revision: Number(resourceVersion) });
    if (name === last) return events;
  }
  throw new Error('the watch ended before the last event');
}

function checkHistory(history: readonly Seen[], writers: readonly Writer[]): void {
  const byName = Map.groupBy(history, ({ name }) => name);
  for (const { objects } of writers) {
    for (const { name, record, current } of objects) {
      const events = byName.get(name) ?? [];
      byName.delete(name);
      const got = events.map(({ type, token }) => `${type} ${token}`);
      assert.deepEqual(
        got,
        record.map(({ type, token }) => `${type} ${token}`),
        `what happened to ${name}`,
      );
      for (const [index, { revision }] of record.entries()) {
        if (revision !== undefined)
          assert.equal(events[index]!.revision, revision, `the revision of ${record[index]!.token}`);
      }
      const last = events.at(-1);
      assert.equal(current === undefined, last === undefined || last.type === 'DELETED', `${name} is there at the end`);
    }
  }
  assert.deepEqual([...byName.keys()], ['last'], 'nothing else was written');
  for (let i = 1; i < history.length; i++) assert.ok(history[i]!.revision > history[i - 1]!.revision, 'in order');
}

function makeWriters(clients: readonly Client[], random: SeededRandom, ledger: Ledger): Writer[] {
  return KINDS.flatMap((type) =>
    Array.from({ length: WRITERS_PER_KIND }, (_, index) => {
      const client = clients[index % clients.length]!;
      return new Writer({ client, type, namespace: NAMESPACE, id: `w${index}`, random, ledger });
    }),
  );
}

test('kill -9 under load: nothing lost, nothing resurrected, no revision used twice, watches resume', async (t) => {
  const random = createSeededRandom(t);
  const dataDir = createTemporaryDir(t);
  const ledger = new Ledger();
  const gate = new Gate();
  const stop = new AbortController();
  t.after(() => stop.abort());

  let server = await startServer(t, { dataDir });
  // The kubeconfig of the first start works for all: neither port nor CA change.
  const access = server.access();
  const port = Number(new URL(access.server).port);
  const clients = Array.from({ length: CONNECTIONS }, () => createClient(openTransport(t, access)));
  const watchClient = createClient(openTransport(t, access));
  await installTickets(clients[0]!);
  await waitForRootCa(clients[0]!);
  const since = (await clients[0]!.list(CONFIG_MAPS, { namespace: NAMESPACE })).metadata.resourceVersion;
  const writers = makeWriters(clients, random, ledger);
  const watches = KINDS.flatMap((type) =>
    [0, 1].map(() => {
      const options = { client: watchClient, type, namespace: NAMESPACE, since, ledger, signal: stop.signal };
      return new ResumingWatch(options, () => gate.passed());
    }),
  );

  let loadMs = 0;
  let fewest = Infinity;
  const written = () => writers.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  for (let kill = 1; kill <= KILLS; kill++) {
    const goal = written() + random.between(LEAST_WRITES, LEAST_WRITES + MORE_WRITES);
    const before = written();
    const start = performance.now();
    const killed = Promise.withResolvers<void>();
    let isKillPlanned = false;
    const planKill = () => {
      if (isKillPlanned || written() < goal) return;
      isKillPlanned = true;
      const kill9 = () => {
        loadMs += performance.now() - start;
        gate.close();
        server.kill('SIGKILL').then(() => killed.resolve(), killed.reject);
      };
      // Half of the kills come right after an acknowledgement: the write must be on disk by then.
      if (random.chance(0.5)) kill9();
      else setTimeout(kill9, random.next() * KILL_SPREAD_MS);
    };
    gate.open();
    await loadUntilKilled(writers, gate, planKill);
    await killed.promise;
    assert.equal((await server.exited).signal, 'SIGKILL');
    fewest = Math.min(fewest, written() - before);

    if (kill % KILL_START_EVERY === 0) {
      const starting = spawnServer(t, { dataDir, port });
      setTimeout(() => void starting.kill('SIGKILL'), random.next() * START_SPREAD_MS);
      assert.equal((await starting.exited).signal, 'SIGKILL');
    }
    server = await startServer(t, { dataDir, port });
  }

  gate.open();
  for (const writer of writers) while (writer.objects.some(({ doubt }) => doubt !== undefined)) await writer.step();
  for (const type of KINDS) {
    const { group, version, kind } = type;
    const apiVersion = group === '' ? version : `${group}/${version}`;
    await clients[0]!.create(type, { apiVersion, kind, metadata: { name: 'last', namespace: NAMESPACE } });
  }

  const rate = Math.round(written() / (loadMs / 1000));
  t.diagnostic(`${written()} acknowledged writes, ${rate}/s under load, at least ${fewest} in each life`);
  assert.ok(fewest >= LEAST_WRITES);
  for (const type of KINDS) {
    const history = await fullHistory(clients[0]!, type, since, 'last');
    checkHistory(
      history,
      writers.filter((writer) => writer.type === type),
    );
    for (const watch of watches.filter((one) => one.type === type)) {
      await watch.waitFor('last');
      assert.deepEqual(watch.seen, history, 'a resumed watch sees each revision once, in order');
      assert.equal(watch.resumed, KILLS, 'each kill broke the watch');
    }
    const { items } = await clients[0]!.list(type, { namespace: NAMESPACE });
    for (const item of items) ledger.note(type, item);
    const present = writers.flatMap((writer) => (writer.type === type ? writer.objects : []));
    const names = present.filter(({ current }) => current !== undefined).map(({ name }) => name);
    const found = items.map(({ metadata }) => metadata.name).filter((name) => name !== ROOT_CA);
    assert.deepEqual(found.sort(), [...names, 'last'].sort());
  }
  stop.abort();
  await Promise.all(watches.map(({ finished }) => finished));
  assert.equal((await server.kill('SIGTERM')).code, 0);
});
