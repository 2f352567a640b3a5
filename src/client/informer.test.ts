import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle } from '#lib/testing/fake-clock.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import { startInformer } from '#client/testing/informer-world.ts';
import { ApiError } from '#kube/api-error.ts';

const LIST = 'GET /apis/test.local/v1/gadgets?limit=500';
const PROBE = 'GET /apis/test.local/v1/gadgets?limit=1';
const WATCH = 'GET /apis/test.local/v1/gadgets?watch';

/** Events at the server or on the connection, and what the listener has seen afterwards. */
interface Scenario {
  act(world: ReturnType<typeof startInformer>): void | Promise<void>;
  /** Seen after `a@1` and `b@2`. */
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
  'continues from the last revision after a connection reset': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      await settle();
      api.breakWatches('reset');
      api.put(GADGETS, aGadget('d'));
      await clock.advance(1000);
    },
    want: ['c@3', 'd@4'],
  },
  'receives again what was lost in a reset connection': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.breakWatches('reset');
      await clock.advance(1000);
    },
    want: ['c@3'],
  },
  'does not take an incomplete line for an object': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.breakWatches('inside a line');
      await clock.advance(1000);
      api.put(GADGETS, aGadget('d'));
    },
    want: ['c@3', 'd@4'],
  },
  'watches again at once after the server ended a watch with events': {
    async act({ api }) {
      api.put(GADGETS, aGadget('c'));
      await settle();
      api.breakWatches('end');
      await settle();
      api.put(GADGETS, aGadget('d'));
    },
    want: ['c@3', 'd@4'],
  },
  'lists again after 410 and shows only the differences, including deletions': {
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
  'shows nothing after a relist without differences': {
    async act({ api, clock }) {
      api.breakWatches('reset');
      api.put({ ...GADGETS, plural: 'widgets' }, aGadget('elsewhere'));
      api.compact();
      await clock.advance(1000);
    },
    want: [],
    lists: 2,
  },
  'repeats nothing after a restart of the server': {
    async act({ api, clock }) {
      api.restart();
      await clock.advance(1000);
      api.put(GADGETS, aGadget('c'));
    },
    want: ['c@3'],
  },
  'reconnects to a server that was away for an hour': {
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
  'shows events that were sent twice only once': {
    act({ api }) {
      api.put(GADGETS, aGadget('c'));
      api.remove(GADGETS, { namespace: 'default', name: 'a' });
      api.put(GADGETS, aGadget('a'));
      api.remove(GADGETS, { namespace: 'default', name: 'c' });
      api.repeat(6);
    },
    want: ['c@3', '-a', 'a@5', '-c'],
  },
  'lists again if the server was restored to an older state': {
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
  'does not go back to an old bookmark': {
    async act({ api, clock }) {
      api.put(GADGETS, aGadget('c'));
      api.bookmark(1);
      await settle();
      api.breakWatches('reset');
      await clock.advance(1000);
    },
    want: ['c@3'],
  },
  'misses no event that arrives after a newer bookmark': {
    act({ api }) {
      api.bookmark(3);
      api.put(GADGETS, aGadget('c'));
    },
    want: ['c@3'],
  },
  'gives up a silent watch after its timeout': {
    async act({ api, clock }) {
      api.breakWatches('silence');
      api.put(GADGETS, aGadget('c'));
      await clock.advance(700_000);
    },
    want: ['c@3'],
  },
  'lists again if the server does not know the revision yet': {
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
    const world = startInformer();
    const { api, informer, seen, link, stop } = world;
    api.put(GADGETS, aGadget('a'));
    api.put(GADGETS, aGadget('b'));
    await informer.waitForSync();
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

test('continues from the last bookmark', async () => {
  const { api, clock, link, informer, stop } = startInformer();
  api.put(GADGETS, aGadget('a'));
  await informer.waitForSync();
  await settle();
  for (let i = 0; i < 5; i++) api.put({ ...GADGETS, plural: 'widgets' }, aGadget(`w${i}`));
  api.bookmark();
  await settle();
  assert.equal(informer.revision, '6');
  api.bookmark(2);
  await settle();
  assert.equal(informer.revision, '6', 'an old bookmark is ignored');
  api.compact();
  api.breakWatches('reset');
  await clock.advance(1000);
  assert.match(link.requests.at(-1)!, /watch=true&resourceVersion=6&/);
  assert.equal(link.count(LIST), 1);
  await stop();
});

test('watches an empty server from 0 and sees all objects, also out of order', async () => {
  const { api, clock, seen, informer, stop } = startInformer();
  await informer.waitForSync();
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

test('accepts the first objects out of order if the watch starts from 0', async () => {
  const { api, seen, link, informer, stop } = startInformer();
  const originalStream = link.transport.stream;
  link.transport.stream = (request) => {
    if (api.revision === 0) {
      api.put(GADGETS, aGadget('b'));
      api.put(GADGETS, aGadget('a'));
    }
    return originalStream(request);
  };
  await informer.waitForSync();
  await settle();
  assert.deepEqual(seen, ['a@2', 'b@1']);
  await stop();
});

test('retries forever with growing delays, which start again after a success', async () => {
  const { api, clock, link, informer, stop } = startInformer();
  await informer.waitForSync();
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
  assert.equal(link.requests.length - before, 2, 'one request for the revision and one watch');
  await stop();
});

test('pauses before it watches again if the server ends each watch at once', async () => {
  const { api, clock, link, informer, stop } = startInformer();
  api.put(GADGETS, aGadget('a'));
  await informer.waitForSync();
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

test('pauses before it lists again if the server answers each watch with 410', async () => {
  const { api, clock, link, informer, stop } = startInformer();
  api.put(GADGETS, aGadget('a'));
  const originalStream = link.transport.stream;
  link.transport.stream = (request) => {
    api.put({ ...GADGETS, plural: 'widgets' }, aGadget(`w${api.revision}`));
    api.compact();
    return originalStream(request);
  };
  await informer.waitForSync();
  await settle();
  assert.equal(link.count(LIST), 2, 'the first time without a pause');
  await clock.advance(60_000);
  assert.ok(link.count(LIST) < 12, `${link.count(LIST)} lists`);
  await stop();
});
