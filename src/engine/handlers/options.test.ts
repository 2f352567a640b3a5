import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deleteOptions, listOptions, watchOptions, writeOptions } from '#engine/handlers/options.ts';
import { ApiError } from '#kube/api-error.ts';

const query = (text: string) => new URLSearchParams(text);

test('without options, a write is persisted and warns', () => {
  assert.deepEqual(writeOptions(query(''), 'CreateOptions'), {
    dryRun: false,
    fieldValidation: 'Warn',
    fieldManager: '',
    force: false,
    sent: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
  });
});

test('a limited list at a version is a page of exactly that version', () => {
  assert.equal(listOptions(query('resourceVersion=5&limit=2')).exact, true);
  assert.equal(listOptions(query('resourceVersion=5')).exact, false);
  assert.equal(listOptions(query('resourceVersion=0&limit=2')).exact, false);
  assert.equal(listOptions(query('limit=-1')).limit, 0);
});

test('the body of a delete takes precedence over its query', () => {
  const fromBody = deleteOptions(query('propagationPolicy=Orphan'), {
    propagationPolicy: 'Foreground',
    gracePeriodSeconds: 3,
    preconditions: { uid: 'u' },
  });
  assert.deepEqual([fromBody.propagationPolicy, fromBody.gracePeriodSeconds, fromBody.uid], ['Foreground', 3, 'u']);
  assert.equal(
    deleteOptions(query('propagationPolicy=Orphan&gracePeriodSeconds=0'), undefined).propagationPolicy,
    'Orphan',
  );
  assert.equal(deleteOptions(query(''), { orphanDependents: true }).propagationPolicy, 'Orphan');
});

const refused: Record<string, { run: () => unknown; message: RegExp }> = {
  'a watch with resourceVersionMatch alone': {
    run: () => watchOptions(query('watch=1&resourceVersionMatch=NotOlderThan')),
    message: /resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided/,
  },
  'initial events without resourceVersionMatch': {
    run: () => watchOptions(query('watch=1&sendInitialEvents=true')),
    message: /sendInitialEvents requires setting resourceVersionMatch to NotOlderThan/,
  },
  'a version that is not a number': {
    run: () => watchOptions(query('resourceVersion=abc')),
    message: /^resourceVersion: Invalid value: "abc"/,
  },
  'a limit that is not a number': { run: () => listOptions(query('limit=many')), message: /invalid syntax/ },
  'both orphanDependents and propagationPolicy': {
    run: () => deleteOptions(query(''), { orphanDependents: true, propagationPolicy: 'Orphan' }),
    message: /cannot be both set/,
  },
  'an exact list of version 0': {
    run: () => listOptions(query('resourceVersion=0&resourceVersionMatch=Exact')),
    message: /resourceVersionMatch "exact" is forbidden for resourceVersion "0"/,
  },
};

for (const [name, { run, message }] of Object.entries(refused)) {
  test(`rejects ${name}`, () => {
    assert.throws(run, (error) => error instanceof ApiError && message.test(error.message));
  });
}
