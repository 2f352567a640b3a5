import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseTooLargeError } from '#cli/connection/api-connection.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { ApiError } from '#kube/api-error.ts';

type Reply = { items: number[]; continue?: string } | Error;
const expired = new ApiError(410, 'Expired', 'The provided continue parameter is too old');
const tooLong = new ResponseTooLargeError('the response is larger than 16777216 bytes');

interface Case {
  replies: Reply[];
  /** The queries of the requests; limit=500 is omitted. */
  asked: string[];
  want: number[] | Error;
  reported?: number;
}
const cases: Record<string, Case> = {
  'reads a single page': { replies: [{ items: [1, 2, 3] }], asked: [''], want: [10, 30] },
  'continues with the next page': {
    replies: [
      { items: [1], continue: 'a+b&c' },
      { items: [3], continue: '' },
    ],
    asked: ['', 'continue=a%2Bb%26c'],
    want: [10, 30],
  },
  'starts again once if the token has expired, and reports it': {
    replies: [{ items: [1], continue: 'x' }, expired, { items: [5], continue: 'y' }, { items: [7] }],
    asked: ['', 'continue=x', '', 'continue=y'],
    want: [50, 70],
    reported: 1,
  },
  'gives up if the token expires again': {
    replies: [{ items: [1], continue: 'x' }, expired, { items: [1], continue: 'y' }, expired],
    asked: ['', 'continue=x', '', 'continue=y'],
    want: expired,
    reported: 1,
  },
  'requests smaller pages if one is too large': {
    replies: [{ items: [1], continue: 'x' }, tooLong, { items: [3], continue: 'y' }, { items: [5] }],
    asked: ['', 'continue=x', 'limit=125&continue=x', 'limit=125&continue=y'],
    want: [10, 30, 50],
  },
  'gives up if the smallest page is too large': {
    replies: [tooLong, tooLong, tooLong, tooLong],
    asked: ['', 'limit=125', 'limit=31', 'limit=8'],
    want: tooLong,
  },
  'passes on refusals of the server': {
    replies: [new ApiError(403, 'Forbidden', 'no')],
    asked: [''],
    want: new ApiError(403, 'Forbidden', 'no'),
  },
};
for (const [title, { replies, asked, want, reported = 0 }] of Object.entries(cases)) {
  test(title, async () => {
    const [left, queries, lines] = [[...replies], [] as string[], [] as string[]];
    const get = async (path: string) => {
      queries.push(path);
      const reply = left.shift();
      if (reply instanceof Error) throw reply;
      assert.ok(reply, 'the case has a reply for each request');
      return { items: reply.items, metadata: { continue: reply.continue } };
    };
    const odd = (item: unknown) => (Number(item) % 2 === 1 ? Number(item) * 10 : undefined);
    const listed = listCollection({ get }, { path: '/vms' }, odd, (line) => lines.push(line));
    if (want instanceof Error) await assert.rejects(listed, { name: want.name, message: want.message });
    else assert.deepEqual(await listed, want);
    assert.deepEqual(
      queries.map((path) => path.replace(/^\/vms\?(limit=500&?)?/, '')),
      asked,
    );
    assert.equal(lines.length, reported);
  });
}

test('reports a response that is not a list', async () => {
  const get = async () => ({ kind: 'Status' });
  await assert.rejects(
    listCollection(
      { get },
      { path: '/vms' },
      () => 1,
      () => {},
    ),
    { name: 'CommandError', message: 'Cannot list /vms: the response is not a list' },
  );
});

test('sends the selector with every page', async () => {
  const asked: string[] = [];
  const get = async (path: string) => {
    asked.push(path);
    return { items: [], metadata: { continue: asked.length === 1 ? 'x' : '' } };
  };
  await listCollection(
    { get },
    { path: '/vms', labelSelector: 'tier in (db,web)' },
    () => 1,
    () => {},
  );
  const selector = 'labelSelector=tier+in+%28db%2Cweb%29';
  assert.deepEqual(asked, [`/vms?limit=500&${selector}`, `/vms?limit=500&${selector}&continue=x`]);
});
