import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import * as tls from 'node:tls';
import { createAuthenticator, userOfPeerCertificate } from '#engine/auth/authenticate.ts';
import type { Evidence } from '#engine/auth/authenticate.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import type { Pki } from '#engine/auth/certificates.ts';
import { tokenLookup } from '#engine/auth/tokens.ts';
import { isApiError } from '#kube/api-error.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';

const jane = { name: 'jane', groups: ['dev', 'system:authenticated'] };
const authenticate = createAuthenticator({
  tokens: tokenLookup([{ token: 's3cret', user: { name: 'robot', uid: '7', groups: ['bots'] } }]),
});

const proofs: Record<string, [evidence: Evidence, want: string]> = {
  'a request without credentials is anonymous': [{}, 'system:anonymous [system:unauthenticated]'],
  'a certificate identifies the user': [{ peerCertificate: jane }, 'jane [dev system:authenticated]'],
  'a token identifies the user': [{ authorization: 'Bearer s3cret' }, 'robot 7 [bots system:authenticated]'],
  'the scheme is case-insensitive': [{ authorization: 'bearer s3cret' }, 'robot 7 [bots system:authenticated]'],
  'a certificate takes precedence over a token': [
    { peerCertificate: jane, authorization: 'Bearer nonsense' },
    'jane [dev system:authenticated]',
  ],
  'a wrong token is refused even if an anonymous request would be served': [
    { authorization: 'Bearer nonsense' },
    'Unauthorized',
  ],
  'a longer token is refused': [{ authorization: 'Bearer s3cret1' }, 'Unauthorized'],
  'a certificate that TLS did not trust is refused': [{ peerCertificate: 'untrusted' }, 'Unauthorized'],
  'a valid token is accepted with an untrusted certificate': [
    { peerCertificate: 'untrusted', authorization: 'Bearer s3cret' },
    'robot 7 [bots system:authenticated]',
  ],
  'another scheme does not count as credentials': [
    { authorization: 'Basic YTpi' },
    'system:anonymous [system:unauthenticated]',
  ],
  'an empty token does not count as credentials': [
    { authorization: 'Bearer ' },
    'system:anonymous [system:unauthenticated]',
  ],
};

for (const [name, [evidence, want]] of Object.entries(proofs)) {
  test(name, () => assert.equal(outcome(evidence), want));
}

function outcome(evidence: Evidence): string {
  try {
    const { name, uid, groups } = authenticate(evidence);
    return `${name}${uid === undefined ? '' : ` ${uid}`} [${groups.join(' ')}]`;
  } catch (error) {
    if (isApiError(error, 'Unauthorized')) return error.reason;
    throw error;
  }
}

let dir: string;
let pki: Pki;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'authenticate-'));
  pki = await ensurePki({ dir, hosts: ['localhost', '127.0.0.1'], now: () => systemClock.now(), log: silentLog });
});
after(() => rm(dir, { recursive: true }));

const subjects: Record<string, { user: string; groups: string[] }> = {
  'a plain name': { user: 'jane', groups: [] },
  'one group': { user: 'jane', groups: ['system:masters'] },
  'several groups in order': { user: 'jane', groups: ['b', 'a', 'c'] },
  'characters that a distinguished name escapes': {
    user: 'a,b+c="d"\\e;<f>',
    groups: ['x, O=system:masters', 'y\nO=z', '#q'],
  },
  'spaces at the ends and other alphabets': { user: ' Jürgen 张 ', groups: [' g '] },
};

for (const [name, { user, groups }] of Object.entries(subjects)) {
  test(`a certificate preserves ${name}`, () => {
    const { certPem } = pki.issueClientCertificate({ user, groups, days: 1 });
    assert.deepEqual(userOfPeerCertificate(new X509Certificate(certPem)), {
      name: user,
      groups: [...groups, 'system:authenticated'],
    });
  });
}

test('the user of a real TLS connection comes from its verified certificate', async (t) => {
  const server = tls.createServer({
    cert: pki.server.certPem,
    key: pki.server.keyPem,
    ca: pki.caPem,
    requestCert: true,
    rejectUnauthorized: false,
  });
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { certPem, keyPem } = pki.issueClientCertificate({ user: 'jane', groups: ['dev', 'ops'], days: 1 });
  const connected = once(server, 'secureConnection') as Promise<[tls.TLSSocket]>;
  const client = tls.connect({ host: '127.0.0.1', port, ca: pki.caPem, cert: certPem, key: keyPem });
  t.after(() => client.destroy());
  await once(client, 'secureConnect');
  const [socket] = await connected;
  assert.equal(socket.authorized, true);
  const certificate = socket.getPeerX509Certificate();
  assert.ok(certificate !== undefined);
  assert.deepEqual(userOfPeerCertificate(certificate), {
    name: 'jane',
    groups: ['dev', 'ops', 'system:authenticated'],
  });
});
