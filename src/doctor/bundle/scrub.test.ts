import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMOVED, scrubObject, scrubText } from '#doctor/bundle/scrub.ts';

const KEY = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nabc\n-----END EC PRIVATE KEY-----';
const TOKEN = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJyb2JvdCJ9.c2lnbmF0dXJl';

const objects: Record<string, { given: unknown; want: unknown }> = {
  'the content of a Secret': {
    given: { data: { p: 'cw==' }, type: 'Opaque' },
    want: { data: REMOVED, type: 'Opaque' },
  },
  'user data of cloud-init': {
    given: { volumes: [{ name: 'seed', cloudInitNoCloud: { userData: 'password: x', networkDataBase64: 'eA==' } }] },
    want: { volumes: [{ name: 'seed', cloudInitNoCloud: { userData: REMOVED, networkDataBase64: REMOVED } }] },
  },
  'kernel arguments': { given: { kernelArgs: 'quiet pw=x' }, want: { kernelArgs: REMOVED } },
  'values of variables': {
    given: {
      env: [
        { name: 'DB', value: 'postgres://u:p@h' },
        { name: 'FROM', valueFrom: {} },
      ],
    },
    want: {
      env: [
        { name: 'DB', value: REMOVED },
        { name: 'FROM', valueFrom: {} },
      ],
    },
  },
  'the last applied configuration': {
    given: {
      metadata: {
        name: 'a',
        managedFields: [],
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', b: 'c' },
      },
    },
    want: { metadata: { name: 'a', annotations: { b: 'c' } } },
  },
  'a token in an odd place': { given: { message: `got ${TOKEN}` }, want: { message: `got ${REMOVED}` } },
  'nothing that is not confidential': {
    given: {
      name: 'db',
      spec: { secretName: 'ref', memory: '128Mi', claimName: 'data-1', n: 3, on: true, none: null },
    },
    want: { name: 'db', spec: { secretName: 'ref', memory: '128Mi', claimName: 'data-1', n: 3, on: true, none: null } },
  },
};
for (const [title, { given, want }] of Object.entries(objects)) {
  test(`scrubs ${title}`, () => assert.deepEqual(scrubObject(given), want));
}

const texts: Record<string, { given: string; want: string }> = {
  'a private key': { given: `a\n${KEY}\nb`, want: `a\n${REMOVED}\nb` },
  'a private key that is cut off': { given: `a ${KEY.slice(0, 50)}`, want: `a ${REMOVED}` },
  'a bearer token': { given: 'Authorization: Bearer abcdef123', want: `Authorization: Bearer ${REMOVED}` },
  'a password': { given: 'db_password=hunter2 x=1', want: `db_password=${REMOVED} x=1` },
  'a password in JSON': { given: '{"password": "a b"}', want: `{"password": ${REMOVED}}` },
  'a kernel line of QEMU': { given: "-append 'console=ttyS0 pw=1' -m 1", want: `-append ${REMOVED} -m 1` },
  'a plain line': { given: 'QEMU 7.2 started guest db', want: 'QEMU 7.2 started guest db' },
};
for (const [title, { given, want }] of Object.entries(texts)) {
  test(`scrubs the text of ${title}`, () => assert.equal(scrubText(given), want));
}

test('stops at the maximum depth', () => {
  const loop: Record<string, unknown> = {};
  loop['loop'] = loop;
  assert.match(JSON.stringify(scrubObject(loop)), /\(removed\)/);
});
