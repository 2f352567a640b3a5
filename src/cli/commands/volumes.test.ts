import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addVolume } from '#cli/commands/volumes.ts';
import { ApiError } from '#kube/api-error.ts';

interface Call {
  readonly printed: string[];
  readonly puts: string[];
  readonly done: Promise<unknown>;
}

/** Calls `virtctl addvolume db --volume-name=data` on a server that answers reads of claims with `reading`. */
function callAddVolume(reading: () => Promise<unknown>): Call {
  const printed: string[] = [];
  const puts: string[] = [];
  const api = {
    namespace: 'shop',
    get: reading,
    put: async (path: string) => void puts.push(path),
  };
  const context = {
    connect: async () => api,
    print: (line: string) => void printed.push(line),
    args: ['db'],
    flags: { volumeName: 'data', persist: false, dryRun: false, wait: false },
  };
  return { printed, puts, done: Promise.resolve(addVolume.run(context as never)) };
}

test('addvolume refuses a claim that does not exist, without a request', async () => {
  const { done, puts } = callAddVolume(() => Promise.reject(new ApiError(404, 'NotFound', 'no such claim')));
  await assert.rejects(done, /^CommandError: Cannot add volume data to VM db: no such claim$/);
  assert.deepEqual(puts, []);
});

test('addvolume works for a user who may not read claims', async () => {
  const { done, puts, printed } = callAddVolume(() => Promise.reject(new ApiError(403, 'Forbidden', 'may not')));
  await done;
  assert.match(puts.join(), /virtualmachineinstances\/db\/addvolume$/);
  assert.match(printed.join(), /^Successfully submitted add volume request to VM db for volume data$/);
});
