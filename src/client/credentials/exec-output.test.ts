import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { parseExecCredential } from '#client/credentials/exec-output.ts';
import { TEST_CLIENT_CERTIFICATE, TEST_CLIENT_KEY, TEST_SERVER_KEY } from '#client/testing/test-certificates.ts';

const V1 = 'client.authentication.k8s.io/v1';
const SECRET = 'do-not-print';
const anOutput = (status: unknown, fields: object = {}) =>
  JSON.stringify({ kind: 'ExecCredential', apiVersion: V1, status, ...fields });
const PAIR = { clientCertificateData: TEST_CLIENT_CERTIFICATE, clientKeyData: TEST_CLIENT_KEY };
const END_MS = new X509Certificate(TEST_CLIENT_CERTIFICATE).validToDate.getTime();

const cases: Record<string, { status: object; token?: string; certificate?: string; expiresAtMs?: number }> = {
  'a token': { status: { token: 'abc' }, token: 'abc' },
  'a token with an expiry': {
    status: { token: 'abc', expirationTimestamp: '2030-01-02T03:04:05Z' },
    token: 'abc',
    expiresAtMs: Date.UTC(2030, 0, 2, 3, 4, 5),
  },
  'empty and null fields as absent': {
    status: { token: 'abc', clientCertificateData: '', clientKeyData: null, expirationTimestamp: null },
    token: 'abc',
  },
  'a certificate, which has its own end': {
    status: PAIR,
    certificate: TEST_CLIENT_CERTIFICATE,
    expiresAtMs: END_MS,
  },
  'the earlier one of both ends': {
    status: { ...PAIR, token: 'abc', expirationTimestamp: '2030-01-02T03:04:05+01:00' },
    token: 'abc',
    certificate: TEST_CLIENT_CERTIFICATE,
    expiresAtMs: Date.UTC(2030, 0, 2, 2, 4, 5),
  },
};
for (const [sentence, { status, token, certificate, expiresAtMs }] of Object.entries(cases)) {
  test(`exec output: reads ${sentence}`, () => {
    const parsed = parseExecCredential(anOutput(status), V1);
    assert.ok(!('problem' in parsed));
    assert.equal(parsed.credential.token, token);
    assert.equal(parsed.credential.clientCertificate, certificate);
    assert.equal(parsed.credential.clientKey, certificate === undefined ? undefined : TEST_CLIENT_KEY);
    assert.equal(parsed.expiresAtMs, expiresAtMs);
  });
}

const refused: Record<string, { output: string; want: RegExp }> = {
  'no output': { output: '', want: /not a JSON object/ },
  'a text': { output: SECRET, want: /not a JSON object/ },
  'a list': { output: `["${SECRET}"]`, want: /not a JSON object/ },
  'another kind': { output: anOutput({ token: SECRET }, { kind: SECRET }), want: /not an ExecCredential/ },
  'another version': {
    output: anOutput({ token: SECRET }, { apiVersion: 'client.authentication.k8s.io/v1beta1' }),
    want: /another apiVersion than the kubeconfig; expected client.authentication.k8s.io\/v1$/,
  },
  'a missing status': { output: anOutput(undefined, { token: SECRET }), want: /no status/ },
  'an empty status': { output: anOutput({}), want: /neither a token nor a certificate/ },
  'a token that is not a string': { output: anOutput({ token: [SECRET] }), want: /status.token .* not a string/ },
  'a token with a line break': { output: anOutput({ token: `${SECRET}\n` }), want: /that a header cannot have/ },
  'a certificate without its key': {
    output: anOutput({ clientCertificateData: SECRET }),
    want: /only one of clientCertificateData and clientKeyData/,
  },
  'a certificate that is not PEM': {
    output: anOutput({ clientCertificateData: SECRET, clientKeyData: SECRET }),
    want: /not a pair in PEM/,
  },
  'the key of another certificate': {
    output: anOutput({ ...PAIR, clientKeyData: TEST_SERVER_KEY }),
    want: /not a pair in PEM/,
  },
  'an expiry that is not a time': {
    output: anOutput({ token: SECRET, expirationTimestamp: 'soon' }),
    want: /expirationTimestamp .* not a time/,
  },
};
for (const [sentence, { output, want }] of Object.entries(refused)) {
  test(`exec output: refuses ${sentence}`, () => {
    const parsed = parseExecCredential(output, V1);
    assert.ok('problem' in parsed);
    assert.match(parsed.problem, want);
    assert.doesNotMatch(parsed.problem, new RegExp(SECRET));
  });
}
