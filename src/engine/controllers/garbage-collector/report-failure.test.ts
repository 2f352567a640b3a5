import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalOf } from '#engine/admission/policies/refusal.ts';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { THINGS } from '#engine/controllers/garbage-collector/object.fixture.ts';
import { reportFailure } from '#engine/controllers/garbage-collector/report-failure.ts';
import { ApiError, forbidden, internalError } from '#kube/api-error.ts';
import { createLog } from '#lib/log.ts';

const ABOUT = { uid: 'uid-db', kind: 'Thing', namespace: 'ns', name: 'db', failures: 3, delayMs: 20 };
const WARN = 40;
const ERROR = 50;

function refusedByPolicy(reason: string | undefined): ApiError {
  const attributes = { resource: THINGS, name: 'db' } as unknown as AdmissionAttributes;
  const denial = { index: 0, message: 'db cannot be deleted', reason };
  return refusalOf(attributes, { policy: 'protection', binding: 'everywhere', denial });
}

interface Line {
  readonly level: number;
  readonly refusal?: string;
  readonly err?: { readonly stack: string };
}

function lineOf(error: unknown): Line {
  const lines: string[] = [];
  reportFailure(createLog('debug', { write: (line) => void lines.push(line) }), error, ABOUT);
  assert.equal(lines.length, 1);
  return JSON.parse(lines[0]!) as Line;
}

const refusals: Record<string, ApiError> = {
  'a policy, as it does by itself (422)': refusedByPolicy(undefined),
  'a policy that says Forbidden (403)': refusedByPolicy('Forbidden'),
  'a built-in check': forbidden(THINGS, 'db', 'this thing may not be deleted'),
  'a webhook': new ApiError(403, 'Forbidden', 'admission webhook "a.b.c" denied the request: keep it'),
  'a webhook with a code of its own': new ApiError(409, '', 'admission webhook "a.b.c" denied the request'),
};
for (const [who, error] of Object.entries(refusals)) {
  test(`refused by ${who}: a warning with the object and the refusal, without a stack`, () => {
    const line = lineOf(error);
    const { level, refusal, err, ...rest } = line;
    assert.deepEqual([level, refusal, err], [WARN, error.message, undefined]);
    for (const [field, value] of Object.entries(ABOUT)) assert.equal((rest as Record<string, unknown>)[field], value);
    assert.ok(!JSON.stringify(line).includes('report-failure.test.ts'), 'no stack anywhere');
  });
}

const faults: Record<string, unknown> = {
  'rights that the collector does not have': forbidden(THINGS, 'db', 'User "gc" cannot delete resource "things"'),
  'a webhook that cannot be called': internalError('failed calling webhook "a.b.c": connection refused'),
  'a patch that makes no object': new ApiError(422, 'Invalid', 'Thing "db" is invalid: metadata: no'),
  'our own mistake': new TypeError('x is not a function'),
};
for (const [what, error] of Object.entries(faults)) {
  test(`${what}: an error with its stack`, () => {
    const { level, refusal, err } = lineOf(error);
    assert.deepEqual([level, refusal], [ERROR, undefined]);
    assert.match(err!.stack, /report-failure\.test\.ts/);
  });
}
