/** Many watchers of many events that disconnect at random: each sees every revision once, in order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { Connections, StormWatcher, type StormWatcherOptions } from '#test/watch/storm-watcher.ts';
import type { Reader } from '#client/client.ts';
import { ROOT_CA } from '#test/support/kinds.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import { startServer, createTemporaryDir, openTransport } from '#test/support/server-process.ts';

const WATCHERS = 50;
const EVENTS = 20_000;
const CONNECTIONS = 10;
const WRITERS = 48;
const OBJECTS_PER_WRITER = 10;
/** The number of watchers that start late, whose first events are replayed. */
const LATE = 10;
const NAMESPACES = ['storm-a', 'storm-b'];
/** One of this many writes is larger than an HTTP/2 frame, so that its line arrives in parts. */
const LARGE_EVERY = 300;
const LARGE = 'x'.repeat(20 * 1024);
const COLORS = ['red', 'green', 'blue'];

const NAMESPACE_KIND: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};

interface Event {
  readonly type: string;
  readonly object: KubeObject;
}

const revisionOf = ({ object }: Event) => Number(object.metadata.resourceVersion);
const keyOf = ({ metadata }: KubeObject) => `${metadata.namespace}/${metadata.name}`;

/** The expected events of a watcher without selectors: the first watcher that sees an event defines it for all others. */
class ExpectedEvents {
  readonly events: Event[] = [];
  readonly #lines: Buffer[] = [];

  /** Returns the revision of the line at this position; throws if it is not the known line. */
  take(place: number, line: Buffer): number {
    const known = this.#lines[place];
    if (known === undefined) {
      assert.equal(place, this.#lines.length);
      const event = JSON.parse(line.toString('utf8')) as Event;
      const last = this.events.at(-1);
      assert.ok(last === undefined || revisionOf(event) > revisionOf(last), `out of order: ${line.toString('utf8')}`);
      this.#lines.push(Buffer.from(line));
      this.events.push(event);
    } else if (!known.equals(line)) {
      assert.equal(line.toString('utf8'), known.toString('utf8'), `event ${place}`);
    }
    return revisionOf(this.events[place]!);
  }
}

/** Writes to its own objects until there are enough events; returns what it did to each. */
async function write(
  client: Client,
  id: number,
  turn: () => boolean,
  random: SeededRandom,
): Promise<Map<string, string[]>> {
  const record = new Map<string, string[]>();
  const living = new Set<string>();
  for (let sent = 0; turn(); sent++) {
    const namespace = random.pick(NAMESPACES);
    const name = `w${id}-${random.between(1, OBJECTS_PER_WRITER)}`;
    const key = `${namespace}/${name}`;
    const labels = { color: random.pick(COLORS) };
    const data = { token: `${id}-${sent}`, pad: random.chance(1 / LARGE_EVERY) ? LARGE : '' };
    let done: string;
    if (!living.has(key)) {
      done = `ADDED ${data.token}`;
      await client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name, labels },
        data,
      });
      living.add(key);
    } else if (random.chance(0.2)) {
      done = 'DELETED';
      await client.delete(CONFIG_MAPS, { namespace, name });
      living.delete(key);
    } else {
      done = `MODIFIED ${data.token}`;
      const body = { metadata: { labels }, data };
      await client.patch(CONFIG_MAPS, { namespace, name }, { type: 'merge', body });
    }
    record.set(key, [...(record.get(key) ?? []), done]);
  }
  return record;
}

/** Returns what a watcher with a selector must see, given all events. */
function selected(events: readonly Event[], wanted: (object: KubeObject) => boolean): string[] {
  const inside = new Set<string>();
  const lines: string[] = [];
  for (const { type, object } of events) {
    const key = keyOf(object);
    const before = inside.has(key);
    const after = type !== 'DELETED' && wanted(object);
    if (after) inside.add(key);
    else inside.delete(key);
    const shown = after ? (before ? 'MODIFIED' : 'ADDED') : before ? 'DELETED' : undefined;
    if (shown !== undefined) lines.push(`${shown} ${key} ${object.metadata.resourceVersion}`);
  }
  return lines;
}

interface Selection {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  wanted(object: KubeObject): boolean;
}

const ALL = '/api/v1/configmaps';
const selections: Record<string, Selection> = {
  'one namespace': {
    path: '/api/v1/namespaces/storm-a/configmaps',
    query: {},
    wanted: ({ metadata }) => metadata.namespace === 'storm-a',
  },
  'a label': {
    path: ALL,
    query: { labelSelector: 'color=red' },
    wanted: ({ metadata }) => metadata.labels!['color'] === 'red',
  },
  'not a label, in one namespace': {
    path: '/api/v1/namespaces/storm-b/configmaps',
    query: { labelSelector: 'color!=blue' },
    wanted: ({ metadata }) => metadata.namespace === 'storm-b' && metadata.labels!['color'] !== 'blue',
  },
  'a name': {
    path: ALL,
    query: { fieldSelector: 'metadata.name=w3-3' },
    wanted: ({ metadata }) => metadata.name === 'w3-3',
  },
};

/** Waits until each namespace has the ConfigMap that a controller writes, so that none comes between the counted writes. */
async function quietRevision(reader: Reader): Promise<number> {
  const spaces = await reader.list(NAMESPACE_KIND);
  for await (const { object } of reader.watch(CONFIG_MAPS, { sendInitialEvents: true, allowWatchBookmarks: true })) {
    const { items, metadata } = await reader.list(CONFIG_MAPS);
    const published = items.filter((item) => item.metadata.name === ROOT_CA);
    if (published.length === spaces.items.length) return Number(metadata.resourceVersion);
    assert.ok(object);
  }
  return assert.fail('the watch ended');
}

test(`${WATCHERS} watchers, ${EVENTS} events, random disconnects: each sees every revision once, in order`, async (t) => {
  const random = createSeededRandom(t);
  let isOver = false;
  t.after(() => (isOver = true));
  const server = await startServer(t, { dataDir: createTemporaryDir(t) });
  const access = server.access();
  const clients = [0, 1, 2].map(() => createClient(openTransport(t, access)));
  for (const name of NAMESPACES) {
    await clients[0]!.create(NAMESPACE_KIND, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const since = await quietRevision(clients[0]!);
  const connections = new Connections(access, CONNECTIONS);
  const watchers: StormWatcher[] = [];
  t.after(() => {
    for (const watcher of watchers) watcher.close();
    connections.close();
  });

  const expected = new ExpectedEvents();
  const complete: Promise<void>[] = [];
  const start = (index: number, options: Pick<StormWatcherOptions, 'path' | 'query' | 'line'>) => {
    const watcher = new StormWatcher({ connections, connection: index % CONNECTIONS, since, random, ...options });
    watchers.push(watcher);
    return watcher;
  };
  const startFull = (index: number) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    complete.push(promise);
    let place = 0;
    start(index, {
      path: ALL,
      query: {},
      line(bytes) {
        const revision = expected.take(place, bytes);
        if (++place === EVENTS) resolve();
        assert.ok(place <= EVENTS, 'more events than writes');
        return revision;
      },
    });
  };
  for (let index = 0; index < WATCHERS - LATE; index++) startFull(index);

  // The last event of each selection is known only at the end, so these watchers collect.
  const collected = Object.entries(selections).map(([title, selection], index) => {
    const lines: string[] = [];
    let enough: (() => void) | undefined;
    start(index, {
      ...selection,
      line(bytes) {
        const { type, object } = JSON.parse(bytes.toString('utf8')) as Event;
        lines.push(`${type} ${keyOf(object)} ${object.metadata.resourceVersion}`);
        enough?.();
        return Number(object.metadata.resourceVersion);
      },
    });
    const reached = (count: number) =>
      new Promise<void>((resolve) => (enough = () => lines.length >= count && resolve())).finally(
        () => (enough = undefined),
      );
    return { title, selection, lines, reached };
  });

  let turns = 0;
  const turn = () => {
    if (isOver || turns === EVENTS) return false;
    turns++;
    if (turns % (EVENTS / LATE) === 0) startFull(turns);
    return true;
  };
  const begun = performance.now();
  const failed = () => Promise.race(watchers.map((watcher) => watcher.failed));
  const writes = Array.from({ length: WRITERS }, (_, id) => write(clients[id % clients.length]!, id, turn, random));
  const records = await Promise.race([Promise.all(writes), failed()]);
  const wroteMs = performance.now() - begun;
  await Promise.race([Promise.all(complete), failed()]);
  assert.equal(complete.length, WATCHERS);
  assert.equal(expected.events.length, EVENTS);

  for (const { title, selection, lines, reached } of collected) {
    const want = selected(expected.events, selection.wanted);
    if (lines.length < want.length) await Promise.race([reached(want.length), failed()]);
    assert.deepEqual(lines, want, title);
    assert.ok(want.length > 10, title);
  }
  const seen = new Map<string, string[]>();
  for (const { type, object } of expected.events) {
    const token = (object['data'] as { token: string }).token;
    seen.set(keyOf(object), [...(seen.get(keyOf(object)) ?? []), type === 'DELETED' ? type : `${type} ${token}`]);
  }
  assert.deepEqual(seen, new Map(records.flatMap((record) => [...record])));

  const sum = (key: keyof StormWatcher['cuts']) => watchers.reduce((total, { cuts }) => total + cuts[key], 0);
  const [streams, dropped, insideLine, byOthers] = [
    sum('streams'),
    sum('connections'),
    sum('insideLine'),
    sum('byOthers'),
  ];
  t.diagnostic(
    `${EVENTS} writes in ${Math.round(wroteMs)} ms, all seen after ${Math.round(performance.now() - begun)} ms`,
  );
  t.diagnostic(`cut ${streams} streams and ${dropped} connections, ${insideLine} inside a line; ${byOthers} by others`);
  assert.ok(streams > WATCHERS && dropped > 5 && insideLine > 5 && byOthers > 5);
  for (const watcher of watchers) watcher.close();
  assert.equal((await server.kill('SIGTERM')).code, 0);
});
