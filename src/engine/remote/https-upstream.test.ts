import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HttpsUpstream, type ClientCertificate } from '#engine/remote/https-upstream.ts';
import { systemClock } from '#lib/clock.ts';
import { issue, makeAuthority } from '#lib/pki/authority.ts';
import { sendJson, startExtensionServer, type ExtensionServer } from '#test/support/extension-server.ts';

const validity = { nowMs: Date.now(), lifetimeMs: 3_600_000 };
const ours = makeAuthority({ commonName: 'ours' }, validity);
const proof = (commonName: string) =>
  issue(ours, { subject: { commonName }, purpose: { kind: 'client' }, ...validity });

let server: ExtensionServer;
before(async () => {
  server = await startExtensionServer({ hosts: ['ext.golden.svc'], clientCa: ours.pem });
  server.on('/x', (_, response) => sendJson(response, {}));
});
after(() => server?.stop());

test('a renewed certificate is used for new connections, and connections are still kept alive', async () => {
  const shown: { now: ClientCertificate } = { now: proof('old') };
  const tls = { ca: Buffer.from(server.caBundle, 'base64').toString('utf8'), client: () => shown.now };
  const upstream = new HttpsUpstream({ tls, maxOpen: 10, clock: systemClock });
  const dialed = { host: '127.0.0.1', port: server.port, serverName: 'ext.golden.svc' };
  const send = async (method: string) => {
    const { signal } = new AbortController();
    const answer = await upstream.open(dialed, { method, path: '/x', headers: {}, headersTimeoutMs: 5000, signal });
    for await (const _ of answer.incoming);
  };
  for (const method of ['GET', 'GET', 'POST']) await send(method);
  shown.now = proof('new');
  for (const method of ['GET', 'GET', 'POST']) await send(method);
  assert.deepEqual(
    server.requests.map(({ peer }) => peer),
    ['old', 'old', 'old', 'new', 'new', 'new'],
  );
  assert.equal(server.connections, 4, 'reads must share a connection');
  upstream.close();
});
