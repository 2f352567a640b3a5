/** A watcher that does not read is disconnected at a limit, at the end of a line, while others continue; it can resume. */
import assert from 'node:assert/strict';
import { get as httpsGet } from 'node:https';
import { connect as connectHttp2 } from 'node:http2';
import type { Readable } from 'node:stream';
import { test } from 'node:test';
import { createClient } from '#client/rest-client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { MAX_WATCH_BUFFER_BYTES } from '#engine/request/limits.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { startServer, createTemporaryDir, openTransport, type Scope } from '#test/support/server-process.ts';

const NAME = { namespace: 'default', name: 'large' };
const PAD = 'x'.repeat(700 * 1024);
/** Much more data than the limit and the socket buffers. */
const WRITES = 3 * Math.ceil(MAX_WATCH_BUFFER_BYTES / PAD.length);

type OpenWatch = (t: Scope, access: ClusterAccess, path: string) => Promise<Readable>;

const watches: Record<string, OpenWatch> = {
  'HTTP/2': async (t, access, path) => {
    const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = access;
    const session = connectHttp2(access.server, { ca, cert, key });
    t.after(() => session.destroy());
    const stream = session.request({ ':path': path });
    await new Promise((resolve) => stream.once('response', resolve));
    return stream;
  },
  'HTTP/1.1': (t, access, path) =>
    new Promise((resolve, reject) => {
      const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = access;
      const request = httpsGet(`${access.server}${path}`, { ca, cert, key, agent: false }, resolve);
      request.on('error', reject);
      t.after(() => request.destroy());
    }),
};

interface Line {
  readonly type: string;
  readonly object: { readonly metadata: { readonly resourceVersion: string } };
}

async function readLines(stream: Readable): Promise<string[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  assert.ok(text.endsWith('\n'), 'it ends with a whole line');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { object } = JSON.parse(line) as Line;
      return object.metadata.resourceVersion;
    });
}

for (const [protocol, open] of Object.entries(watches)) {
  test(`${protocol}: a watcher that does not read is disconnected, others are not, and it can resume`, async (t) => {
    const server = await startServer(t, { dataDir: createTemporaryDir(t) });
    const access = server.access();
    const client = createClient(openTransport(t, access));
    const first = await client.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { ...NAME },
      data: { pad: PAD },
    });
    const since = first.metadata.resourceVersion;
    const path = (resourceVersion: string) =>
      `/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=${resourceVersion}`;

    const slow = await open(t, access, path(since));
    slow.pause();
    const written: string[] = [];
    const reading = (async () => {
      const seen: string[] = [];
      const stream = createClient(openTransport(t, access)).watch(CONFIG_MAPS, {
        namespace: 'default',
        resourceVersion: since,
      });
      for await (const { object } of stream) {
        seen.push(object.metadata.resourceVersion);
        if (seen.length === WRITES) return seen;
      }
      return seen;
    })();
    for (let i = 0; i < WRITES; i++) {
      const body = { data: { turn: String(i) } };
      const { metadata } = await client.patch(CONFIG_MAPS, NAME, { type: 'merge', body });
      written.push(metadata.resourceVersion);
    }
    assert.deepEqual(await reading, written, 'a watcher that reads sees everything');

    const late = await readLines(slow);
    assert.ok(late.length < WRITES, `it was not disconnected: ${late.length} of ${WRITES}`);
    assert.ok(late.length > 0, 'buffered events are still delivered');
    assert.deepEqual(late, written.slice(0, late.length), 'it gets the first events');

    const resumed = await open(t, access, `${path(late.at(-1)!)}&timeoutSeconds=1`);
    assert.deepEqual(await readLines(resumed), written.slice(late.length));
    assert.equal((await server.kill('SIGTERM')).code, 0);
  });
}
