import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { Reader } from '#client/client.ts';
import { systemClock } from '#lib/clock.ts';
import { issue, makeAuthority } from '#lib/pki/authority.ts';
import { createPeers } from '#plane/node/peers.ts';

const validity = { nowMs: Date.now(), lifetimeMs: 3_600_000 };
const authority = makeAuthority({ commonName: 'nodes' }, validity);
const certificateOf = (commonName: string) => {
  const purpose = { kind: 'peer', hosts: ['127.0.0.1'] } as const;
  const { certPem: cert, keyPem: key } = issue(authority, { subject: { commonName }, purpose, ...validity });
  return { cert, key, ca: authority.pem };
};

test('a renewed certificate is used for new connections to other nodes', async (t) => {
  const names: string[] = [];
  const server = createServer({ ...certificateOf('system:node:other'), requestCert: true });
  server.on('upgrade', ({ socket }, upgraded: Socket) => {
    names.push(String((socket as TLSSocket).getPeerCertificate().subject.CN));
    upgraded.on('error', () => {});
    upgraded.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const node = {
    metadata: { name: 'other' },
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  };
  const client = { get: async () => node } as unknown as Reader;
  let identity = certificateOf('system:node:old');
  const peers = createPeers({ client, ...identity, currentIdentity: () => identity, clock: systemClock });
  t.after(() => {
    peers.close();
    server.close();
  });
  for (const name of ['system:node:old', 'system:node:new']) {
    identity = certificateOf(name);
    (await peers.open('other', {})).destroy();
  }
  assert.deepEqual(names, ['system:node:old', 'system:node:new']);
});
