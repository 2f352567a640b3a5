import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TransitionJob } from '#api/machine-types/kinds.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { forbidden, internalError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { giveUpJob } from '#transition/program.ts';

const aJob = (backoffLimit: number): Stored<TransitionJob> => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'j', namespace: 'sys', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: { backoffLimit },
});

function scene(...answers: (Error | undefined)[]) {
  const clock = new FakeClock();
  const bodies: unknown[] = [];
  const client = {
    async patch(_type: unknown, _name: unknown, { body }: { body: unknown }) {
      bodies.push(body);
      const error = answers[bodies.length - 1];
      return await (error === undefined ? Promise.resolve(aJob(0) as never) : Promise.reject(error));
    },
  };
  const parts = { client, clock, log: silentLog, signal: new AbortController().signal };
  return { clock, bodies, parts };
}

test('the backoffLimit of this Job is set to 0', async () => {
  const { bodies, parts } = scene();
  await giveUpJob(parts, aJob(100));
  assert.deepEqual(bodies, [{ metadata: { uid: 'u' }, spec: { backoffLimit: 0 } }]);
});

test('a backoffLimit of 0 is not written again', async () => {
  const { bodies, parts } = scene();
  await giveUpJob(parts, aJob(0));
  assert.deepEqual(bodies, []);
});

test('the write is repeated while the server is unavailable', async () => {
  const { clock, bodies, parts } = scene(internalError('away'), undefined);
  const given = giveUpJob(parts, aJob(100));
  await clock.advance(10_000);
  await given;
  assert.equal(bodies.length, 2);
});

test('a refusal is ignored', async () => {
  const { bodies, parts } = scene(forbidden({ group: 'batch', plural: 'jobs' }, 'j', 'no'));
  await giveUpJob(parts, aJob(100));
  assert.equal(bodies.length, 1);
});
