import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reader } from '#client/client.ts';
import { createClaimLister } from '#controllers/shared/persistent-state/live-claims.ts';

const signal = new AbortController().signal;

/** Returns a reader whose lists the test completes; the name of the claim counts the lists. */
function createReader() {
  const lists: { readonly namespace: string | undefined; readonly answer: (error?: Error) => void }[] = [];
  const list: Pick<Reader, 'list'>['list'] = async (_, { namespace } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const name = `seen-by-${lists.length}`;
    lists.push({ namespace, answer: (error) => (error === undefined ? resolve() : reject(error)) });
    await promise;
    const metadata = { name, uid: name, resourceVersion: '1', creationTimestamp: '' };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata };
    return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1' }, items: [claim as never] };
  };
  return { lists, claims: createClaimLister({ list }) };
}

const names = async (listed: ReturnType<ReturnType<typeof createClaimLister>>) =>
  (await listed).map(({ metadata }) => metadata.name);
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('callers during a list share the next one, which begins after their calls', async () => {
  const { lists, claims } = createReader();
  const first = names(claims('ns', { signal }));
  const [second, third] = [names(claims('ns', { signal })), names(claims('ns', { signal }))];
  await turn();
  assert.equal(lists.length, 1);
  lists[0]?.answer();
  assert.deepEqual(await first, ['seen-by-0']);
  await turn();
  assert.equal(lists.length, 2);
  const fourth = names(claims('ns', { signal }));
  lists[1]?.answer();
  assert.deepEqual([await second, await third], [['seen-by-1'], ['seen-by-1']]);
  await turn();
  lists[2]?.answer();
  assert.deepEqual(await fourth, ['seen-by-2'], 'the second list had begun before that call');
});

test('namespaces do not wait for each other', async () => {
  const { lists, claims } = createReader();
  const both = [names(claims('a', { signal })), names(claims('b', { signal }))];
  await turn();
  assert.deepEqual(
    lists.map(({ namespace }) => namespace),
    ['a', 'b'],
  );
  for (const { answer } of lists) answer();
  await Promise.all(both);
});

test('a failed list fails only for its own callers', async () => {
  const { lists, claims } = createReader();
  const failing = names(claims('ns', { signal }));
  const next = names(claims('ns', { signal }));
  lists[0]?.answer(new Error('no answer'));
  await assert.rejects(failing, /no answer/);
  await turn();
  lists[1]?.answer();
  assert.deepEqual(await next, ['seen-by-1']);
});

test('an aborted caller stops waiting', async () => {
  const { claims } = createReader();
  const given = new AbortController();
  const listed = names(claims('ns', { signal: given.signal }));
  given.abort(new Error('stopped'));
  await assert.rejects(listed, /stopped/);
});
