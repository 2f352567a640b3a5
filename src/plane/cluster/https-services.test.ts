import assert from 'node:assert/strict';
import { request } from 'node:https';
import { after, before, test } from 'node:test';
import { silentLog } from '#lib/log.ts';
import { issue, makeAuthority, type IssuedCertificate } from '#lib/pki/authority.ts';
import { startHttpsServices, type HttpsServices } from '#plane/cluster/https-services.ts';
import { jsonResponse, type SubresourceRequest } from '#subresources/http-types.ts';

const validity = { nowMs: Date.now(), lifetimeMs: 3_600_000 };
const ours = makeAuthority({ commonName: 'ours' }, validity);
const clusters = makeAuthority({ commonName: 'clusters' }, validity);
const client = (authority: typeof ours, commonName: string) =>
  issue(authority, { subject: { commonName }, purpose: { kind: 'client' }, ...validity });
const PROXY = client(clusters, 'front-proxy-client');
const AS_ADA = { 'x-remote-user': 'ada', 'x-remote-group': ['dev', 'ops, west'] };
const START = '/apis/subresources.kubevirt.io/v1/namespaces/mine/virtualmachines/db/start';

let services: HttpsServices;
const received: SubresourceRequest[] = [];
before(async () => {
  const purpose = { kind: 'server', hosts: ['localhost'] } as const;
  services = await startHttpsServices({
    host: '127.0.0.1',
    port: 0,
    identity: issue(ours, { subject: { commonName: 'services' }, purpose, ...validity }),
    frontProxy: {
      ca: clusters.pem,
      names: ['front-proxy-client'],
      userHeaders: ['x-remote-user'],
      groupHeaders: ['x-remote-group'],
    },
    webhook: { review: async (path, review) => ({ path, review }) },
    async api(one) {
      received.push(one);
      return jsonResponse(200, { bytes: (await one.body()).length });
    },
    checkReady: () => 'not yet',
    metricsText: () => 'up 1\n',
    bodies: { oneBytes: 1000, allBytes: 1500 },
    log: silentLog,
  });
});
after(() => services?.stop());

interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string | string[]>;
  readonly as?: IssuedCertificate;
  readonly body?: string;
}

function ask({
  method = 'GET',
  path,
  headers = {},
  as,
  body,
}: Ask): Promise<{ status: number; text: string; keep: string }> {
  const proof = as === undefined ? {} : { cert: as.certPem, key: as.keyPem };
  return new Promise((resolve, reject) => {
    const target = {
      host: '127.0.0.1',
      port: services.port,
      servername: 'localhost',
      ca: ours.pem,
      agent: false,
    } as const;
    const sent = request({ ...target, ...proof, method, path, headers: { connection: 'keep-alive', ...headers } });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => {
        sent.destroy();
        resolve({ status: answer.statusCode ?? 0, text, keep: String(answer.headers['keep-alive']) });
      });
    });
    sent.end(body);
  });
}

const refused: Record<string, Ask> = {
  'refuses a client without a certificate': { path: START, headers: AS_ADA },
  'refuses a certificate of our own authorities': {
    path: START,
    headers: AS_ADA,
    as: client(ours, 'front-proxy-client'),
  },
  'refuses another client of the cluster': {
    path: START,
    headers: AS_ADA,
    as: client(clusters, 'system:node:n1'),
  },
  'refuses the API server without a user': { path: START, as: PROXY },
};
for (const [name, wrong] of Object.entries(refused)) {
  test(name, async () => {
    received.length = 0;
    assert.equal((await ask(wrong)).status, 401);
    assert.equal(received.length, 0);
  });
}

test('passes on the user and groups from the API server', async () => {
  received.length = 0;
  assert.equal(
    (await ask({ method: 'PUT', path: `${START}?a=b`, headers: AS_ADA, as: PROXY, body: '{}' })).text,
    '{"bytes":2}',
  );
  const [one = assert.fail('no request')] = received;
  assert.deepEqual(one.user, { name: 'ada', groups: ['dev', 'ops, west'] });
  assert.deepEqual([one.method, one.path, one.query.get('a')], ['PUT', START, 'b']);
});

test('does not normalize the path, which the API server has authorized as written', async () => {
  received.length = 0;
  const path = '/apis/subresources.kubevirt.io/v1/namespaces/mine/../victim/virtualmachines/db/start';
  await ask({ method: 'PUT', path, headers: AS_ADA, as: PROXY });
  assert.deepEqual(
    received.map((one) => one.path),
    [path],
  );
});

test('answers reviews of any client, and nothing else', async () => {
  assert.equal(
    (await ask({ method: 'POST', path: '/mutate-x', body: '[1]' })).text,
    '{"path":"/mutate-x","review":[1]}',
  );
  assert.equal((await ask({ method: 'POST', path: '/mutate-x', body: 'no' })).status, 400);
  assert.equal((await ask({ path: '/mutate-x' })).status, 405);
  assert.equal((await ask({ path: '/metrics' })).text, 'up 1\n');
  assert.deepEqual((await ask({ path: '/readyz' })).text, 'not yet');
});

test('limits bodies, each and all together', async () => {
  const large = await ask({ method: 'POST', path: '/mutate-x', body: 'x'.repeat(1001) });
  assert.equal(large.status, 413);
  // Answered requests do not count.
  const all = await Promise.all(
    Array.from({ length: 6 }, () => ask({ method: 'POST', path: '/mutate-x', body: `"${'x'.repeat(900)}"` })),
  );
  assert.ok(
    all.every(({ status }) => status === 200 || status === 429),
    String(all.map(({ status }) => status)),
  );
  assert.equal((await ask({ method: 'POST', path: '/mutate-x', body: `"${'x'.repeat(900)}"` })).status, 200);
});

test('keeps connections longer than API servers do', async () => {
  const [, seconds] = /timeout=(\d+)/.exec((await ask({ path: '/livez' })).keep) ?? [];
  assert.ok(Number(seconds) > 90, `${seconds} s`);
});
