/** Only an object that is certainly not there is absent: whatever else the API answers decides nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reader } from '#client/client.ts';
import { DependencyGraph } from '#engine/controllers/garbage-collector/graph.ts';
import { readLiveObject, observeOwners, type LiveReadParts } from '#engine/controllers/garbage-collector/read-live.ts';
import {
  anObject,
  aReference,
  aThing,
  FOREGROUND,
  THINGS,
} from '#engine/controllers/garbage-collector/object.fixture.ts';
import type { ServedKinds } from '#engine/controllers/garbage-collector/served-kinds.ts';
import { ApiError, notFound } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';

function parts(answer: Stored | Error): LiveReadParts {
  const get = async () => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return {
    reader: { get } as unknown as Reader,
    kinds: { find: () => THINGS } as unknown as ServedKinds,
    graph: new DependencyGraph(),
    wasDeleted: () => false,
    signal: new AbortController().signal,
  };
}

const cases: Record<string, [answer: Stored | Error, state: string | RegExp]> = {
  'an owner that is there is solid': [anObject('owner'), 'solid'],
  'an owner in foreground deletion waits': [anObject('owner', FOREGROUND), 'waiting'],
  'an owner that was made anew is absent': [anObject('owner', { uid: 'another' }), 'absent'],
  'an owner of whose name there is nothing is absent': [notFound(THINGS, 'owner'), 'absent'],
  'an owner whose kind is not there is not absent': [
    new ApiError(404, 'NotFound', 'the server could not find the requested resource'),
    /could not find the requested resource/,
  ],
  'an owner that may not be read is not absent': [new ApiError(403, 'Forbidden', 'not for you'), /not for you/],
  'an owner that the server fails to read is not absent': [new ApiError(500, 'InternalError', 'broken'), /broken/],
  'an owner that cannot be asked for is not absent': [new Error('ECONNRESET'), /ECONNRESET/],
};

for (const [name, [answer, want]] of Object.entries(cases)) {
  test(name, async () => {
    const dependent = aThing('child', { ownerReferences: [aReference('owner')] });
    const looks = observeOwners(parts(answer), dependent);
    if (want instanceof RegExp) await assert.rejects(looks, want);
    else
      assert.deepEqual(
        (await looks).map(({ state }) => state),
        [want],
      );
  });
}

test('an object is itself only by its uid, and an error is not its end', async () => {
  const node = aThing('thing');
  assert.equal(await readLiveObject(parts(anObject('thing', { uid: 'another' })), node), undefined);
  assert.equal(await readLiveObject(parts(notFound(THINGS, 'thing')), node), undefined);
  assert.equal((await readLiveObject(parts(anObject('thing')), node))?.object.metadata.name, 'thing');
  await assert.rejects(readLiveObject(parts(new ApiError(403, 'Forbidden', 'not for you')), node), /not for you/);
});
