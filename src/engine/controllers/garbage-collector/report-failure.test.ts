import assert from 'node:assert/strict';
import { test } from 'node:test';
import { policyRefusalError } from '#engine/admission/policies/validating-policies.ts';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { THINGS } from '#engine/controllers/garbage-collector/testing/sample-object.ts';
import { reportFailure } from '#engine/controllers/garbage-collector/report-failure.ts';
import { ApiError, forbidden, internalError } from '#kube/api-error.ts';
import { createLog } from '#lib/log.ts';

const OBJECT = { uid: 'uid-db', kind: 'Thing', namespace: 'ns', name: 'db', failures: 3, delayMs: 20 };
const WARN = 40;
const ERROR = 50;

function refusedByPolicy(reason: string | undefined): ApiError {
  const attributes = { resource: THINGS, name: 'db' } as unknown as AdmissionAttributes;
  const denial = { index: 0, message: 'db cannot be deleted', reason };
  return policyRefusalError(attributes, { policy: 'protection', binding: 'everywhere', denial });
}

interface Line {
  readonly level: number;
  readonly refusal?: string;
  readonly err?: { readonly stack: string };
}

function lineOf(error: unknown): Line {
  const lines: string[] = [];
  reportFailure(createLog('debug', { write: (line) => void lines.push(line) }), error, OBJECT);
  assert.equal(lines.length, 1);
  return JSON.parse(lines[0]!) as Line;
}

const refusals: Record<string, ApiError> = {
  'a policy without a reason (422)': refusedByPolicy(undefined),
  'a policy with reason Forbidden (403)': refusedByPolicy('Forbidden'),
  'a built-in check': forbidden(THINGS, 'db', 'this thing may not be deleted'),
  'a webhook': new ApiError(403, 'Forbidden', 'admission webhook "a.b.c" denied the request: keep it'),
  'a webhook with its own code': new ApiError(409, '', 'admission webhook "a.b.c" denied the request'),
};
for (const [source, error] of Object.entries(refusals)) {
  test(`logs a refusal by ${source} as a warning without a stack`, () => {
    const line = lineOf(error);
    const { level, refusal, err, ...rest } = line;
    assert.deepEqual([level, refusal, err], [WARN, error.message, undefined]);
    for (const [field, value] of Object.entries(OBJECT)) assert.equal((rest as Record<string, unknown>)[field], value);
    assert.ok(!JSON.stringify(line).includes('report-failure.test.ts'), 'the line contains no stack');
  });
}

const errors: Record<string, unknown> = {
  'missing permissions of the collector': forbidden(THINGS, 'db', 'User "gc" cannot delete resource "things"'),
  'a webhook that cannot be called': internalError('failed calling webhook "a.b.c": connection refused'),
  'a patch that results in an invalid object': new ApiError(422, 'Invalid', 'Thing "db" is invalid: metadata: no'),
  'a programming error': new TypeError('x is not a function'),
};
for (const [what, error] of Object.entries(errors)) {
  test(`logs ${what} as an error with its stack`, () => {
    const { level, refusal, err } = lineOf(error);
    assert.deepEqual([level, refusal], [ERROR, undefined]);
    assert.match(err!.stack, /report-failure\.test\.ts/);
  });
}
