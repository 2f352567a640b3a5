/** Tests that only an object that certainly does not exist counts as absent. */
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
} from '#engine/controllers/garbage-collector/testing/sample-object.ts';
import type { ServedKinds } from '#engine/controllers/garbage-collector/served-kinds.ts';
import { ApiError, notFound } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';

function parts(response: Stored | Error): LiveReadParts {
  const get = async () => {
    if (response instanceof Error) throw response;
    return response;
  };
  return {
    reader: { get } as unknown as Reader,
    kinds: { find: () => THINGS } as unknown as ServedKinds,
    graph: new DependencyGraph(),
    wasDeleted: () => false,
    signal: new AbortController().signal,
  };
}

const cases: Record<string, [response: Stored | Error, state: string | RegExp]> = {
  'an existing owner is solid': [anObject('owner'), 'solid'],
  'an owner in foreground deletion waits': [anObject('owner', FOREGROUND), 'waiting'],
  'an owner with another uid is absent': [anObject('owner', { uid: 'another' }), 'absent'],
  'an owner that does not exist is absent': [notFound(THINGS, 'owner'), 'absent'],
  'an owner whose kind does not exist is not absent': [
    new ApiError(404, 'NotFound', 'the server could not find the requested resource'),
    /could not find the requested resource/,
  ],
  'an owner that may not be read is not absent': [new ApiError(403, 'Forbidden', 'not for you'), /not for you/],
  'an owner that the server fails to read is not absent': [new ApiError(500, 'InternalError', 'broken'), /broken/],
  'an owner is not absent if the connection fails': [new Error('ECONNRESET'), /ECONNRESET/],
};

for (const [name, [response, want]] of Object.entries(cases)) {
  test(name, async () => {
    const dependent = aThing('child', { ownerReferences: [aReference('owner')] });
    const observations = observeOwners(parts(response), dependent);
    if (want instanceof RegExp) await assert.rejects(observations, want);
    else
      assert.deepEqual(
        (await observations).map(({ state }) => state),
        [want],
      );
  });
}

test('identifies an object by its uid, and does not treat an error as a deletion', async () => {
  const node = aThing('thing');
  assert.equal(await readLiveObject(parts(anObject('thing', { uid: 'another' })), node), undefined);
  assert.equal(await readLiveObject(parts(notFound(THINGS, 'thing')), node), undefined);
  assert.equal((await readLiveObject(parts(anObject('thing')), node))?.object.metadata.name, 'thing');
  await assert.rejects(readLiveObject(parts(new ApiError(403, 'Forbidden', 'not for you')), node), /not for you/);
});
