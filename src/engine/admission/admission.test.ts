import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admissionChain, type AdmissionAttributes } from '#engine/admission/admission.ts';

const nothing = {} as AdmissionAttributes;

test('steps run in order, also after one that waits', async () => {
  const events: string[] = [];
  const chain = admissionChain({
    mutating: [
      () => void events.push('first'),
      async () => {
        await Promise.resolve();
        events.push('second');
      },
      () => void events.push('third'),
    ],
    validating: [],
    guards: [],
  });
  await chain.mutate(nothing);
  assert.deepEqual(events, ['first', 'second', 'third']);
});

test('a chain without waiting steps returns no promise', () => {
  const chain = admissionChain({ mutating: [() => {}], validating: [() => {}, () => {}], guards: [] });
  assert.equal(chain.mutate(nothing), undefined);
  assert.equal(chain.validate(nothing), undefined);
});

test('a refusal ends the chain, both synchronously and asynchronously', async () => {
  const events: string[] = [];
  const refuse = () => {
    throw new Error('no');
  };
  const last = () => void events.push('last');
  const late = admissionChain({
    mutating: [],
    validating: [() => Promise.reject(new Error('no')), last],
    guards: [refuse, last],
  });
  await assert.rejects(Promise.resolve(late.validate(nothing)), /no/);
  assert.throws(() => late.guard(nothing), /no/);
  assert.throws(() => admissionChain({ mutating: [refuse, last], validating: [], guards: [] }).mutate(nothing), /no/);
  assert.deepEqual(events, []);
});
