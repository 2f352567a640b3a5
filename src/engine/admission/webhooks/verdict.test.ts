import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import { deniedError } from '#engine/admission/webhooks/webhook-errors.ts';
import { readVerdict, type ExpectedReview } from '#engine/admission/webhooks/verdict.ts';
import { decodeResponse } from '#engine/remote/webhooks/webhook-response.ts';

const expected: ExpectedReview = { uid: 'u-1', version: 'v1', mutating: false };
const review = (response: object | undefined, head: object = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response,
  ...head,
});
const patch = Buffer.from('[]').toString('base64');

const bad: Record<string, { answer: unknown; expected?: Partial<ExpectedReview>; want: string }> = {
  'not an object': {
    answer: 'yes',
    want: `couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
  },
  'no response': { answer: review(undefined), want: 'webhook response was absent' },
  'a null response': { answer: { ...review(undefined), response: null }, want: 'webhook response was absent' },
  'no uid': { answer: review({ allowed: true }), want: 'expected response.uid="u-1", got ""' },
  'the uid of another request': {
    answer: review({ uid: 'u-2', allowed: true }),
    want: 'expected response.uid="u-1", got "u-2"',
  },
  'another version': {
    answer: review({ uid: 'u-1', allowed: true }, { apiVersion: 'admission.k8s.io/v1beta1' }),
    want: 'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview',
  },
  'no version and kind': {
    answer: { response: { uid: 'u-1', allowed: true } },
    want: 'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=',
  },
  'allowed is not a boolean': {
    answer: review({ uid: 'u-1', allowed: 'yes' }),
    want: 'json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool',
  },
  'a validating webhook with a patch': {
    answer: review({ uid: 'u-1', allowed: true, patch }),
    want: 'validating webhook may not return response.patch',
  },
  'a validating webhook with a patch type': {
    answer: review({ uid: 'u-1', allowed: true, patchType: 'JSONPatch' }),
    want: 'validating webhook may not return response.patchType',
  },
  'a patch without its type': {
    answer: review({ uid: 'u-1', allowed: true, patch }),
    expected: { mutating: true },
    want: 'webhook returned response.patch but not response.patchType',
  },
  'a patch type without a patch': {
    answer: review({ uid: 'u-1', allowed: true, patchType: 'JSONPatch' }),
    expected: { mutating: true },
    want: 'webhook returned response.patchType but not response.patch',
  },
  'an empty patch type': {
    answer: review({ uid: 'u-1', allowed: true, patch, patchType: '' }),
    expected: { mutating: true },
    want: 'webhook returned invalid response.patchType of ""',
  },
  'another patch type': {
    answer: review({ uid: 'u-1', allowed: true, patch, patchType: 'MergePatch' }),
    expected: { mutating: true },
    want: 'unsupported patch type "MergePatch"',
  },
  'a patch that is not base64': {
    answer: review({ uid: 'u-1', allowed: true, patch: '[{}]', patchType: 'JSONPatch' }),
    expected: { mutating: true },
    want: 'illegal base64 data at input byte 0',
  },
};

for (const [name, { answer, expected: other, want }] of Object.entries(bad)) {
  test(`an invalid response is rejected: ${name}`, () => {
    assert.throws(
      () => readVerdict(answer, { ...expected, ...other }),
      (error) => error instanceof CallFailure && error.message === want,
    );
  });
}

test('a verdict contains the valid parts of the response', () => {
  const verdict = readVerdict(
    review({
      uid: 'u-1',
      allowed: true,
      warnings: ['careful', 7, null],
      auditAnnotations: { seen: 'yes', odd: 3 },
      patch: Buffer.from('[{"op":"remove"}]').toString('base64'),
      patchType: 'JSONPatch',
    }),
    { ...expected, mutating: true },
  );
  assert.deepEqual(verdict, {
    allowed: true,
    status: {},
    warnings: ['careful'],
    auditAnnotations: new Map([['seen', 'yes']]),
    patch: '[{"op":"remove"}]',
  });
});

test('a response in v1beta1 needs no uid', () => {
  const verdict = readVerdict({ response: { allowed: true } }, { ...expected, version: 'v1beta1' });
  assert.equal(verdict.allowed, true);
});

test('a response without allowed denies the request', () => {
  assert.equal(readVerdict(review({ uid: 'u-1' }), expected).allowed, false);
});

const answers: Record<string, { status: number; body: string; contentType?: string; want: string }> = {
  'a redirect is not followed': {
    status: 302,
    body: '',
    want: 'the server responded with the status code 302 but did not return more information',
  },
  'a missing path': { status: 404, body: '', want: 'the server could not find the requested resource' },
  'a plain text error': {
    status: 500,
    body: 'boom\n',
    contentType: 'text/plain; charset=utf-8',
    want: 'an error on the server ("boom") has prevented the request from succeeding',
  },
  'an error of another content type': {
    status: 500,
    body: '\u0000\u0001',
    contentType: 'application/octet-stream',
    want: 'an error on the server ("unknown") has prevented the request from succeeding',
  },
  'an error as a Status': {
    status: 500,
    body: '{"kind":"Status","message":"the disk is full"}',
    contentType: 'application/json',
    want: 'the disk is full',
  },
  unavailable: { status: 503, body: '', want: 'the server is currently unable to handle the request' },
  'no JSON': {
    status: 200,
    body: 'nope',
    want: "couldn't get version/kind; json parse error: invalid character 'o' in literal null (expecting 'u')",
  },
  'truncated JSON': {
    status: 200,
    body: '{"response":',
    want: "couldn't get version/kind; json parse error: unexpected end of JSON input",
  },
  'an empty body': {
    status: 200,
    body: '',
    want: "couldn't get version/kind; json parse error: unexpected end of JSON input",
  },
  'too deeply nested JSON': {
    status: 200,
    body: '['.repeat(2000) + ']'.repeat(2000),
    want: "couldn't get version/kind; json parse error: nested too deeply: the limit is 256 levels",
  },
};

for (const [name, { status, body, contentType = '', want }] of Object.entries(answers)) {
  test(`an HTTP error response is rejected: ${name}`, () => {
    assert.throws(
      () => decodeResponse({ status, contentType, body: Buffer.from(body) }),
      (error) => error instanceof CallFailure && error.message === want,
    );
  });
}

const HEAD = 'admission webhook "x.y.z" denied the request';
const refusals: Record<string, { status: Record<string, unknown>; code: number; reason: string; message: string }> = {
  'without a message': { status: {}, code: 400, reason: '', message: `${HEAD} without explanation` },
  'with a message': { status: { message: 'no' }, code: 400, reason: '', message: `${HEAD}: no` },
  'with code, reason and message': {
    status: { code: 403, reason: 'Forbidden', message: 'no' },
    code: 403,
    reason: 'Forbidden',
    message: `${HEAD}: no`,
  },
  'with a reason only': {
    status: { code: 422, reason: 'Invalid' },
    code: 422,
    reason: 'Invalid',
    message: `${HEAD}: Invalid`,
  },
  'with a code that means success': {
    status: { code: 200 },
    code: 400,
    reason: '',
    message: `${HEAD} without explanation`,
  },
  'with an invalid code': { status: { code: 1e9 }, code: 400, reason: '', message: `${HEAD} without explanation` },
  'with fields of other types': {
    status: { code: '403', reason: 7, message: ['no'] },
    code: 400,
    reason: '',
    message: `${HEAD} without explanation`,
  },
};

for (const [name, { status, code, reason, message }] of Object.entries(refusals)) {
  test(`a webhook denies ${name}`, () => {
    const verdict = { allowed: false, status, warnings: [], auditAnnotations: new Map(), patch: '' };
    const error = deniedError('x.y.z', verdict);
    assert.deepEqual([error.code, error.reason, error.message], [code, reason, message]);
  });
}

test('valid details of a denial are kept', () => {
  const details = {
    name: 'db',
    kind: 7,
    causes: [{ field: 'spec.size', message: 'too big', reason: 'FieldValueInvalid', more: 1 }, 'x'],
    retryAfterSeconds: 3,
  };
  const verdict = { allowed: false, status: { details }, warnings: [], auditAnnotations: new Map(), patch: '' };
  assert.deepEqual(deniedError('x.y.z', verdict).details, {
    name: 'db',
    causes: [{ field: 'spec.size', message: 'too big', reason: 'FieldValueInvalid' }],
    retryAfterSeconds: 3,
  });
});
