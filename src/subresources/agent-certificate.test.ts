import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '#kube/api-error.ts';
import { issueAgentCertificate } from '#subresources/agent-certificate.ts';

const NODE = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
const SPEC = { publicKey: 'KEY', hosts: ['10.0.0.1', 'n1'] };
const signer = { sign: (user: string) => ({ certificate: `for ${user}`, authorities: 'CA' }) };

const requestCertificate = (spec: unknown, user = NODE, method = 'POST') =>
  issueAgentCertificate(signer, {
    method,
    path: '/apis/subresources.kubevirt.io/v1/agentcertificates',
    query: new URLSearchParams(),
    user,
    body: async () => Buffer.from(JSON.stringify({ metadata: { name: 'n2' }, spec })),
    signal: new AbortController().signal,
  });

test('a node gets a certificate for its own name, whatever the body says', async () => {
  const { status, body } = await requestCertificate(SPEC);
  const issued = JSON.parse(body.toString());
  assert.equal(status, 201);
  assert.equal(issued.metadata.name, 'n1');
  assert.deepEqual(issued.status, { certificate: 'for system:node:n1', authorities: 'CA' });
});

const refused: Record<string, { code: number; spec?: unknown; user?: typeof NODE; method?: string }> = {
  'a user who is not a node': { code: 403, user: { name: 'ada', groups: ['system:nodes'] } },
  'a user with the name of a node but not its group': { code: 403, user: { name: 'system:node:n1', groups: [] } },
  'the name of another node': { code: 400, spec: { ...SPEC, hosts: ['n2'] } },
  'too many addresses': { code: 400, spec: { ...SPEC, hosts: Array.from({ length: 17 }, () => '10.0.0.1') } },
  'no key': { code: 400, spec: { hosts: [] } },
  'a key that is far too long': { code: 413, spec: { ...SPEC, publicKey: 'x'.repeat(20_000) } },
  'another method': { code: 405, method: 'PUT' },
};
for (const [sentence, { code, spec = SPEC, user, method }] of Object.entries(refused)) {
  test(`agent certificates are refused for ${sentence}`, async () => {
    await assert.rejects(
      requestCertificate(spec, user, method),
      (error) => error instanceof ApiError && error.code === code,
    );
  });
}

test('without a signer the resource does not exist', async () => {
  const request = {
    method: 'POST',
    path: '/',
    query: new URLSearchParams(),
    user: NODE,
    body: async () => Buffer.alloc(0),
  };
  const { signal } = new AbortController();
  await assert.rejects(
    issueAgentCertificate(undefined, { ...request, signal }),
    /could not find the requested resource/,
  );
});
