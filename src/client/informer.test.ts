import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Informer } from '#client/informer.ts';
import type { InformerOptions } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#client/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import type { Gadget } from '#client/testing/gadgets.ts';
import { ApiError } from '#kube/api-error.ts';
import { silentLog } from '#lib/log.ts';

const LIST = 'GET /apis/test.local/v1/gadgets?limit=500';
const PROBE = 'GET /apis/test.local/v1/gadgets?limit=1';
const WATCH = 'GET /apis/test.local/v1/gadgets?watch';

function setUp(options: Partial<InformerOptions<Gadget>> = {}) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [GADGETS]);
  const reader = link.client;
  const informer = new Informer({ reader, type: GADGETS, clock, log: silentLog, random: () => 0.5, ...options });
  /** `a@3` for a state, `-a` for a deletion. */
  const seen: string[] = [];
  informer.onChange((key, change) => {
    const name = key.replace('default/', '');
    seen.push(change.new === undefined ? `-${name}` : `${name}@${change.new.metadata.resourceVersion}`);
  });
  const controller = new AbortController();
  const stopped = informer.start({ signal: controller.signal });
  const stop = async (): Promise<void> => {
    controller.abort();
    await stopped;
  };
  return { api, clock, link, informer, seen, stop };
}

/** What happens to the server or the way to it, and what the listener has seen in the end. */
interface Scenario {
  act(world: ReturnType<typeof setUp>): void | Promise<void>;
  /** After `a@1 b@2`. */
  want: string[];
  lists?: number;
}

const scenarios: Record<string, Scenario> = {
  'shows each change as it happens': {
    act({ api }) {
      api.put(GADGETS, aGadget('a', { spec: { size: 2 } }));
      api.remove(GADGETS, { namespace: 'default', name: 'b' });
      api.put(GADGETS, aGadget('b'));
    },
    want: ['a@3', '-b', 'b@5'],
  },
  'goes on from the last revision after a connection reset': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      await settle();
      api.breakWatches('reset');
      api.put(GADGETS, aGadget('d'));
      await clock.advance(1000);
    },
    want: ['c@3', 'd@4'],
  },
  'gets again what was lost inside of a reset connection': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.breakWatches('reset');
      await clock.advance(1000);
    },
    want: ['c@3'],
  },
  'takes no half line for an object': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.breakWatches('inside a line');
      await clock.advance(1000);
      api.put(GADGETS, aGadget('d'));
    },
    want: ['c@3', 'd@4'],
  },
  'watches on at once after the server ended a watch in which something happened': {
    async act({ api }) {
      api.put(GADGETS, aGadget('c'));
      await settle();
      api.breakWatches('end');
      await settle();
      api.put(GADGETS, aGadget('d'));
    },
    want: ['c@3', 'd@4'],
  },
  'lists again after 410 and shows only what differs, deletions included': {
    async act({ api, clock }) {
      api.breakWatches('reset');
      api.put(GADGETS, aGadget('a', { spec: { size: 2 } }));
      api.put(GADGETS, aGadget('a', { spec: { size: 3 } }));
      api.remove(GADGETS, { namespace: 'default', name: 'b' });
      api.put(GADGETS, aGadget('c'));
      api.compact();
      await clock.advance(1000);
    },
    want: ['-b', 'a@4', 'c@6'],
    lists: 2,
  },
  'shows nothing after a relist that brought nothing new': {
    async act({ api, clock }) {
      api.breakWatches('reset');
      api.put({ ...GADGETS, plural: 'widgets' }, aGadget('elsewhere'));
      api.compact();
      await clock.advance(1000);
    },
    want: [],
    lists: 2,
  },
  'a server restart repeats nothing': {
    async act({ api, clock }) {
      api.restart();
      await clock.advance(1000);
      api.put(GADGETS, aGadget('c'));
    },
    want: ['c@3'],
  },
  'a server that is away for an hour is found again': {
    async act({ api, clock, link }) {
      link.state = 'refused';
      api.restart();
      await clock.advance(3_600_000);
      link.state = 'up';
      api.put(GADGETS, aGadget('c'));
      await clock.advance(30_000);
    },
    want: ['c@3'],
  },
  'events that are sent twice are seen once': {
    act({ api }) {
      api.put(GADGETS, aGadget('c'));
      api.remove(GADGETS, { namespace: 'default', name: 'a' });
      api.put(GADGETS, aGadget('a'));
      api.remove(GADGETS, { namespace: 'default', name: 'c' });
      api.repeat(6);
    },
    want: ['c@3', '-a', 'a@5', '-c'],
  },
  'lists again when the server was set back to an older state': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.put(GADGETS, aGadget('a', { spec: { size: 9 } }));
      await settle();
      api.restart({ at: 1 });
      await clock.advance(1000);
      api.put(GADGETS, aGadget('b'));
    },
    want: ['c@3', 'a@4', '-b', '-c', 'a@1', 'b@2'],
    lists: 2,
  },
  'an old bookmark does not set it back': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.bookmark(1);
      await settle();
      api.breakWatches('reset');
      await clock.advance(1000);
    },
    want: ['c@3'],
  },
  'a bookmark that overtakes an event hides nothing': {
    act({ api }) {
      api.bookmark(3);
      api.put(GADGETS, aGadget('c'));
    },
    want: ['c@3'],
  },
  'a watch that fell silent is given up when its time is over': {
    async act({ api, clock }) {
      api.breakWatches('silence');
      api.put(GADGETS, aGadget('c'));
      await clock.advance(700_000);
    },
    want: ['c@3'],
  },
  'a revision that the server does not know yet means a new list': {
    async act({ api, clock, link }) {
      api.breakWatches('reset');
      const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
      link.failures.push(new ApiError(504, 'Timeout', 'Timeout: Too large resource version', { details: { causes } }));
      await clock.advance(2000);
    },
    want: [],
    lists: 2,
  },
};

for (const [sentence, { act, want, lists = 1 }] of Object.entries(scenarios)) {
  test(`informer: ${sentence}`, async () => {
    const world = setUp();
    const { api, informer, seen, link, stop } = world;
    api.put(GADGETS, aGadget('a'));
    api.put(GADGETS, aGadget('b'));
    await informer.synced();
    await settle();
    assert.deepEqual(seen.splice(0), ['a@1', 'b@2']);
    await act(world);
    await settle();
    assert.deepEqual(seen, want);
    assert.equal(link.count(LIST), lists, 'lists');
    const inCache = informer.list().map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`);
    const onServer = api.all(GADGETS).map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`);
    assert.deepEqual(inCache.sort(), onServer.sort());
    await stop();
    assert.equal(api.watchers, 0, 'the watch is closed');
  });
}

test('a bookmark moves the place to go on from', async () => {
  const { api, clock, link, informer, stop } = setUp();
  api.put(GADGETS, aGadget('a'));
  await informer.synced();
  await settle();
  for (let i = 0; i < 5; i++) api.put({ ...GADGETS, plural: 'widgets' }, aGadget(`w${i}`));
  api.bookmark();
  await settle();
  assert.equal(informer.revision, '6');
  api.bookmark(2);
  await settle();
  assert.equal(informer.revision, '6', 'an old one does not');
  api.compact();
  api.breakWatches('reset');
  await clock.advance(1000);
  assert.match(link.requests.at(-1)!, /watch=true&resourceVersion=6&/);
  assert.equal(link.count(LIST), 1);
  await stop();
});

test('a server without any revision is watched from 0, and the names out of order are all seen', async () => {
  const { api, clock, seen, informer, stop } = setUp();
  await informer.synced();
  assert.equal(informer.revision, '0');
  await settle();
  api.put(GADGETS, aGadget('b'));
  api.put(GADGETS, aGadget('a'));
  await settle();
  api.breakWatches('reset');
  api.put(GADGETS, aGadget('c'));
  await clock.advance(1000);
  assert.deepEqual(seen, ['b@1', 'a@2', 'c@3']);
  await stop();
});

test('the first objects may come out of order when the watch starts from 0', async () => {
  const { api, seen, link, informer, stop } = setUp();
  const originalStream = link.transport.stream;
  link.transport.stream = (request) => {
    if (api.revision === 0) {
      api.put(GADGETS, aGadget('b'));
      api.put(GADGETS, aGadget('a'));
    }
    return originalStream(request);
  };
  await informer.synced();
  await settle();
  assert.deepEqual(seen, ['a@2', 'b@1']);
  await stop();
});

test('retries come ever more slowly, are never given up, and start afresh after a success', async () => {
  const { api, clock, link, informer, stop } = setUp();
  await informer.synced();
  await settle();
  link.state = 'refused';
  api.breakWatches('reset');
  const perMinute: number[] = [];
  for (let minute = 0; minute < 5; minute++) {
    const before = link.requests.length;
    await clock.advance(60_000);
    perMinute.push(link.requests.length - before);
  }
  assert.deepEqual(perMinute, [7, 3, 2, 3, 3]);
  link.state = 'up';
  await clock.advance(30_000);
  api.put(GADGETS, aGadget('a'));
  await settle();
  assert.equal(informer.size, 1);
  const before = link.requests.length;
  api.breakWatches('reset');
  await clock.advance(500);
  assert.equal(link.requests.length - before, 2, 'a look at the revision and a watch');
  await stop();
});

test('a server that ends each watch at once is not asked without a pause', async () => {
  const { api, clock, link, informer, stop } = setUp();
  api.put(GADGETS, aGadget('a'));
  await informer.synced();
  for (let i = 0; i < 50; i++) {
    await settle();
    api.breakWatches('end');
  }
  assert.equal(link.count(WATCH), 1);
  for (let i = 0; i < 300; i++) {
    await clock.advance(100);
    api.breakWatches('end');
  }
  assert.deepEqual([link.count(WATCH), link.count(PROBE)], [7, 6]);
  await stop();
});

test('a server that answers each watch with 410 is not listed without a pause', async () => {
  const { api, clock, link, informer, stop } = setUp();
  api.put(GADGETS, aGadget('a'));
  const originalStream = link.transport.stream;
  link.transport.stream = (request) => {
    api.put({ ...GADGETS, plural: 'widgets' }, aGadget(`w${api.revision}`));
    api.compact();
    return originalStream(request);
  };
  await informer.synced();
  await settle();
  assert.equal(link.count(LIST), 2, 'once at once');
  await clock.advance(60_000);
  assert.ok(link.count(LIST) < 12, `${link.count(LIST)} lists`);
  await stop();
});

test('reached waits for the revision that was written', async () => {
  const { api, link, informer, stop } = setUp();
  await informer.synced();
  const { metadata } = await link.client.create(GADGETS, aGadget('a'));
  assert.ok(await informer.reached(metadata.resourceVersion));
  assert.equal(informer.get('default/a')?.metadata.resourceVersion, metadata.resourceVersion);
  const controller = new AbortController();
  const never = informer.reached('99', { signal: controller.signal });
  controller.abort();
  assert.equal(await never, false);
  const later = informer.reached(String(api.revision + 1));
  api.put(GADGETS, aGadget('b'));
  assert.equal(await later, true);
  const whenStopped = informer.reached('999');
  await stop();
  assert.equal(await whenStopped, false);
});

test('reached does not wait for a revision that a set-back server will never have', async () => {
  const { api, clock, informer, stop } = setUp();
  api.put(GADGETS, aGadget('a'));
  api.put(GADGETS, aGadget('b'));
  await informer.synced();
  await settle();
  let reached = false;
  void informer.reached('5').then(() => (reached = true));
  api.restart({ at: 1 });
  await clock.advance(1000);
  assert.ok(reached);
  await stop();
});

test('synced rejects when the informer stops first', async () => {
  const { link, informer, stop } = setUp();
  link.state = 'held';
  const synced = assert.rejects(informer.synced(), /the informer has stopped/);
  await stop();
  await synced;
});

test('a listener that comes late gets what is there; one that threw does not disturb the others', async () => {
  const { api, seen, informer, stop } = setUp();
  api.put(GADGETS, aGadget('a'));
  await informer.synced();
  const late: string[] = [];
  informer.onChange(() => {
    throw new Error('boom');
  });
  const leave = informer.onChange((key, change) => late.push(`${key} ${change.old === undefined}`));
  await settle();
  api.put(GADGETS, aGadget('b'));
  await settle();
  leave();
  api.put(GADGETS, aGadget('c'));
  await settle();
  assert.deepEqual(late, ['default/a true', 'default/b true']);
  assert.deepEqual(seen, ['a@1', 'b@2', 'c@3']);
  await stop();
});

test('indexes follow the objects', async () => {
  const indexes = { color: ({ spec }: Gadget) => (spec?.color === undefined ? [] : [spec.color]) };
  const { api, informer, stop } = setUp({ indexes, pageSize: 1 });
  const names = (color: string) => informer.byIndex('color', color).map(({ metadata }) => metadata.name);
  api.put(GADGETS, aGadget('a', { spec: { color: 'red' } }));
  api.put(GADGETS, aGadget('b', { spec: { color: 'red' } }));
  await informer.synced();
  assert.deepEqual(names('red'), ['a', 'b']);
  await settle();
  api.put(GADGETS, aGadget('a', { spec: { color: 'blue' } }));
  await settle();
  assert.deepEqual([names('red'), names('blue')], [['b'], ['a']]);
  api.remove(GADGETS, { namespace: 'default', name: 'a' });
  await settle();
  assert.deepEqual(names('blue'), []);
  assert.throws(() => informer.byIndex('size', '1'), /no such index/);
  await stop();
});
