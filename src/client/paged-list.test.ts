import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAll } from '#client/paged-list.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import { ApiError } from '#kube/api-error.ts';

function startApi(count: number) {
  const api = new FakeApi();
  const link = new FakeLink(api, [GADGETS]);
  for (let i = 0; i < count; i++) api.put(GADGETS, aGadget(`g${String(i).padStart(4, '0')}`));
  return { api, link };
}

test('reads all pages of one revision', async () => {
  const { link, api } = startApi(1203);
  const { items, resourceVersion } = await listAll(link.client, GADGETS, { namespace: 'default' });
  assert.equal(items.length, 1203);
  assert.equal(new Set(items.map(({ metadata }) => metadata.name)).size, 1203);
  assert.equal(resourceVersion, String(api.revision));
  assert.equal(link.requests.length, 3);
});

test('sees one state although objects change between the pages', async () => {
  const { link, api } = startApi(10);
  const reader = {
    list: (async (type, options) => {
      const page = await link.client.list(type, options);
      api.put(GADGETS, aGadget('zz-new', { spec: { size: api.revision } }));
      return page;
    }) as typeof link.client.list,
  };
  const { items, resourceVersion } = await listAll(reader, GADGETS, { pageSize: 3 });
  assert.deepEqual([items.length, resourceVersion], [10, '10']);
});

test('starts again when a continue token has expired', async () => {
  const { link, api } = startApi(10);
  let pages = 0;
  const reader = {
    list: (async (type, options) => {
      if (++pages === 2) {
        api.put(GADGETS, aGadget('another'));
        api.compact();
      }
      return await link.client.list(type, options);
    }) as typeof link.client.list,
  };
  const { items, resourceVersion } = await listAll(reader, GADGETS, { pageSize: 3 });
  assert.deepEqual([items.length, resourceVersion], [11, '11']);
});

test('lists everything at once if tokens always expire', async () => {
  const { link, api } = startApi(10);
  const reader = {
    list: (async (type, options) => {
      const page = await link.client.list(type, options);
      api.compact();
      return page;
    }) as typeof link.client.list,
  };
  const { items } = await listAll(reader, GADGETS, { pageSize: 3 });
  assert.equal(items.length, 10);
  assert.equal(link.requests.length, 7, 'three attempts with two pages each, then everything at once');
});

test('throws other errors', async () => {
  const { link } = startApi(1);
  link.failures.push(new ApiError(403, 'Forbidden', 'no'));
  await assert.rejects(listAll(link.client, GADGETS), /^ApiError: no/);
});
