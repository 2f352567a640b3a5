import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { anAdmission } from '#engine/admission/matching/testing/attributes.ts';
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import type { Hook } from '#engine/admission/webhooks/hook.ts';
import { MAX_RESPONSE_BYTES } from '#engine/remote/webhooks/review-poster.ts';
import { WebhookClient } from '#engine/admission/webhooks/webhook-client.ts';
import { encodeStored } from '#engine/encoding/stored-object.ts';
import { LocalServices, type LocalService } from '#engine/remote/local-services.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { buildReviewAnswer, sendJson, startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts';

/** No test listens on a privileged port. A port that was free a moment ago may be that of another test. */
const UNUSED_PORT = 1;

let server: WebhookServer;
let stranger: WebhookServer;
let several: WebhookServer;
let store: Store;
before(async () => {
  store = await openMemoryStore();
  server = await startWebhookServer();
  stranger = await startWebhookServer({ hosts: ['elsewhere.example'] });
  server.answer('/allow', () => ({}));
  stranger.answer('/allow', () => ({}));
  several = await startWebhookServer({ hosts: ['several.golden.svc'] });
  several.answer('/allow', () => ({}));
  server.misbehave('/huge', (response) => response.writeHead(200).end(Buffer.alloc(MAX_RESPONSE_BYTES + 1, 'a')));
  server.misbehave('/drip', (response) => void response.writeHead(200).write('{"response":'));
  server.misbehave('/never', () => {});
  server.misbehave('/cut', (response, socket) => {
    response.writeHead(200, { 'content-length': '100' }).write('{', () => socket.destroy());
  });
  server.misbehave('/reset', (_response, socket) => socket.destroy());
  server.misbehave('/redirect', (response) => response.writeHead(307, { location: '/allow' }).end());
  server.misbehave('/headers', (response) => response.writeHead(200, { 'x-much': 'a'.repeat(64 * 1024) }).end());
  server.misbehave('/lie', (response, _socket, review) => {
    const answer = buildReviewAnswer(review, {});
    sendJson(response, { ...answer, response: { ...answer.response, uid: 'another' } });
  });
  await put('golden/hooks', { type: 'ClusterIP', externalIPs: ['127.0.0.1'], ports: [{ port: server.port }] });
  await put('golden/cluster', { type: 'ClusterIP', clusterIP: '127.0.0.1', ports: [{ port: server.port }] });
  await put('golden/named', { type: 'ExternalName', externalName: '127.0.0.1' });
  await put('golden/headless', { type: 'ClusterIP', clusterIP: 'None', ports: [{ port: 443 }] });
  await put('golden/several', { type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] });
  await slice('golden/several-gone', 'several', UNUSED_PORT);
  await slice('golden/several-here', 'several', several.port);
  await put('golden/nowhere', { type: 'ClusterIP', ports: [{ port: 443 }] });
});
after(async () => {
  await Promise.all([server.stop(), stranger.stop(), several.stop()]);
  await store.close();
});

async function slice(id: string, service: string, port: number): Promise<void> {
  const object = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: id, labels: { 'kubernetes.io/service-name': service } },
    endpoints: [{ addresses: ['127.0.0.1'] }],
    ports: [{ name: 'https', port }],
  };
  const collection = 'endpointslices.discovery.k8s.io';
  await store.put({ collection, id, expected: 0, encode: (revision) => encodeStored(object, revision) });
}

async function put(id: string, spec: Record<string, unknown>): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'Service', metadata: { name: id }, spec };
  await store.put({ collection: 'services', id, expected: 0, encode: (revision) => encodeStored(object, revision) });
}

/** A clock whose timers fire on demand. */
class ManualClock implements Clock {
  readonly timers = new Map<() => void, number>();
  now = () => 0;
  elapsed = () => 0;
  after(ms: number, fn: () => void): () => void {
    this.timers.set(fn, ms);
    return () => void this.timers.delete(fn);
  }
  expire(): void {
    for (const fn of this.timers.keys()) fn();
  }
}

interface Options {
  readonly clock?: Clock;
  readonly services?: LocalServices;
}

function aClient(config: WebhookClientConfig, { clock = systemClock, services = new LocalServices() }: Options = {}) {
  return new WebhookClient(config, { store, services, clock });
}

const hook = {
  configuration: 'c',
  name: 'x.y.z',
  timeoutSeconds: 10,
  version: 'v1',
} as Hook;

function ask(client: WebhookClient, overrides: Partial<Hook> = {}, signal?: AbortSignal) {
  const attributes = anAdmission(signal === undefined ? {} : { signal });
  return client.call({ ...hook, ...overrides }, attributes, configMaps, false);
}

const at = (path: string, config: Partial<WebhookClientConfig> = {}): WebhookClientConfig => ({
  url: server.url + path,
  caBundle: server.caBundle,
  ...config,
});
const inService = (name: string, port = server.port): WebhookClientConfig => ({
  service: { namespace: 'golden', name, path: '/allow', port },
  caBundle: server.caBundle,
});

test('sends an AdmissionReview and reads the response', async () => {
  const client = aClient(at('/allow'));
  assert.equal((await ask(client)).allowed, true);
  const { path, review } = server.reviews.at(-1)!;
  assert.equal(path, '/allow?timeout=10s');
  const { uid, ...request } = review.request;
  assert.match(uid, /^[0-9a-f-]{36}$/);
  assert.deepEqual(
    { ...review, request },
    {
      kind: 'AdmissionReview',
      apiVersion: 'admission.k8s.io/v1',
      request: {
        kind: { group: '', version: 'v1', kind: 'ConfigMap' },
        resource: { group: '', version: 'v1', resource: 'configmaps' },
        requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
        requestResource: { group: '', version: 'v1', resource: 'configmaps' },
        name: 'thing',
        namespace: 'golden',
        operation: 'CREATE',
        userInfo: { username: 'alice', groups: ['system:authenticated'] },
        object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'thing', namespace: 'golden' } },
        oldObject: null,
        dryRun: false,
        options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      },
    },
  );
  client.retire();
});

test('if one of several servers is down, another is called', async () => {
  const config = { service: { namespace: 'golden', name: 'several', path: '/allow' }, caBundle: several.caBundle };
  // The order is random: that all runs pick the same one is less likely than one in a million.
  for (let i = 0; i < 20; i++) {
    const client = aClient(config);
    assert.equal((await ask(client)).allowed, true);
    client.retire();
  }
  assert.equal(several.reviews.length, 20);
});

const post = (path: string) => `failed to call webhook: Post "${server.url}${path}?timeout=10s": `;
const failures: Record<string, { config: () => WebhookClientConfig; want: () => string }> = {
  'a response that is too large': {
    config: () => at('/huge'),
    want: () => `${post('/huge')}the response is larger than ${MAX_RESPONSE_BYTES} bytes`,
  },
  'a truncated response': { config: () => at('/cut'), want: () => `${post('/cut')}EOF` },
  'a connection that is closed without a response': { config: () => at('/reset'), want: () => `${post('/reset')}EOF` },
  'headers that are too large': {
    config: () => at('/headers'),
    want: () => `${post('/headers')}net/http: HTTP/1.x transport connection broken: malformed HTTP response`,
  },
  'a redirect': {
    config: () => at('/redirect'),
    want: () =>
      'failed to call webhook: the server responded with the status code 307 but did not return more information',
  },
  'a missing path': {
    config: () => at('/nothing'),
    want: () => 'failed to call webhook: the server could not find the requested resource',
  },
  'a certificate of another CA': {
    config: () => at('/allow', { caBundle: stranger.caBundle }),
    want: () => `${post('/allow')}tls: failed to verify certificate: x509: certificate signed by unknown authority`,
  },
  'no CA bundle for a private CA': {
    config: () => at('/allow', { caBundle: '' }),
    want: () => `${post('/allow')}tls: failed to verify certificate: x509: certificate signed by unknown authority`,
  },
  'an invalid CA bundle': {
    config: () => at('/allow', { caBundle: Buffer.from('garbage').toString('base64') }),
    want: () => `${post('/allow')}unable to load root certificates: unable to parse bytes as PEM block`,
  },
  'a certificate for another name': {
    config: () => ({ url: `${stranger.url}/allow`, caBundle: stranger.caBundle }),
    want: () =>
      `failed to call webhook: Post "${stranger.url}/allow?timeout=10s": tls: failed to verify certificate: ` +
      "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
  },
  'a missing service': {
    config: () => inService('missing'),
    want: () =>
      `failed to call webhook: Post "https://missing.golden.svc:${server.port}/allow?timeout=10s": service "missing" not found`,
  },
  'a service without this port': {
    config: () => inService('hooks', 1),
    want: () =>
      'failed to call webhook: Post "https://hooks.golden.svc:1/allow?timeout=10s": no service port 1 found for service "hooks"',
  },
  'a headless service': {
    config: () => inService('headless', 443),
    want: () =>
      'failed to call webhook: Post "https://headless.golden.svc:443/allow?timeout=10s": cannot route to service with ClusterIP "None"',
  },
  'a service without an address': {
    config: () => inService('nowhere', 443),
    want: () =>
      'failed to call webhook: Post "https://nowhere.golden.svc:443/allow?timeout=10s": no endpoints available for service "nowhere"',
  },
  'a certificate for another service': {
    config: () => inService('cluster'),
    want: () =>
      `failed to call webhook: Post "https://cluster.golden.svc:${server.port}/allow?timeout=10s": tls: failed to verify ` +
      'certificate: x509: certificate is valid for hooks.golden.svc, not cluster.golden.svc',
  },
};

for (const [name, { config, want }] of Object.entries(failures)) {
  test(`a call fails: ${name}`, async () => {
    const client = aClient(config());
    await assert.rejects(ask(client), (error) => error instanceof CallFailure && error.message === want());
    client.retire();
  });
}

test('a call fails: a wrong uid', async () => {
  const client = aClient(at('/lie'));
  await assert.rejects(ask(client), (error) => {
    const { uid } = server.reviews.at(-1)!.review.request;
    const want = `received invalid webhook response: expected response.uid="${uid}", got "another"`;
    return error instanceof CallFailure && error.message === want;
  });
  client.retire();
});

test('a call fails: nothing listens', async () => {
  const port = UNUSED_PORT;
  const client = aClient({ url: `https://127.0.0.1:${port}/validate` });
  await assert.rejects(ask(client), {
    message: `failed to call webhook: Post "https://127.0.0.1:${port}/validate?timeout=10s": dial tcp 127.0.0.1:${port}: connect: connection refused`,
  });
});

test('a call fails: the server does not use TLS', async () => {
  const plain = createServer((socket) => {
    socket.on('error', () => {}).resume();
    socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
  });
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  const { port } = plain.address() as AddressInfo;
  const client = aClient({ url: `https://127.0.0.1:${port}/` });
  await assert.rejects(ask(client), {
    message: `failed to call webhook: Post "https://127.0.0.1:${port}/?timeout=10s": tls: first record does not look like a TLS handshake`,
  });
  await new Promise((resolve) => plain.close(resolve));
});

for (const [name, service] of Object.entries({ externalIPs: 'hooks', externalName: 'named' })) {
  test(`a service is found by its ${name}`, async () => {
    // The certificate contains only `hooks`: the name of the service is verified, not that of the address.
    const client = aClient(inService(service));
    if (service === 'hooks') assert.equal((await ask(client)).allowed, true);
    else await assert.rejects(ask(client), /certificate is valid for hooks\.golden\.svc, not named\.golden\.svc/);
    client.retire();
  });
}

for (const path of ['/never', '/drip']) {
  test(`timeoutSeconds ends a call that hangs at ${path}`, async () => {
    const clock = new ManualClock();
    const client = aClient(at(path), { clock });
    const seen = server.reviews.length;
    const call = ask(client, { timeoutSeconds: 2 });
    const ended = assert.rejects(call, {
      message: `failed to call webhook: Post "${server.url}${path}?timeout=2s": context deadline exceeded`,
    });
    await server.awaitReviews(seen + 1);
    assert.deepEqual([...clock.timers.values()], [2000]);
    clock.expire();
    await ended;
    assert.equal(clock.timers.size, 0);
  });
}

test('a client that disconnects ends its call', async () => {
  const client = aClient(at('/never'));
  const request = new AbortController();
  const seen = server.reviews.length;
  const ended = assert.rejects(ask(client, {}, request.signal), /context canceled$/);
  await server.awaitReviews(seen + 1);
  request.abort();
  await ended;
  await assert.rejects(ask(client, {}, request.signal), /context canceled$/, 'no further call may begin');
});

test('connections are reused, and closed ones are replaced', async () => {
  const client = aClient(at('/allow'));
  await ask(client);
  const { connections } = server;
  for (let i = 0; i < 3; i++) await ask(client);
  assert.equal(server.connections, connections);
  server.dropIdle();
  assert.equal((await ask(client)).allowed, true);
  client.retire();
});

test('a slow webhook has a bounded number of calls, and further calls fail at once', async () => {
  const client = aClient(at('/never'));
  const requests = new AbortController();
  const seen = server.reviews.length;
  const running = Array.from({ length: 32 + 512 }, () =>
    ask(client, {}, requests.signal).catch((error: Error) => error.message),
  );
  await assert.rejects(ask(client), {
    message: 'failed to call webhook: too many requests are waiting for this webhook; the limit is 512',
  });
  await server.awaitReviews(seen + 32);
  const other = aClient(at('/allow'));
  assert.equal((await ask(other)).allowed, true, 'other webhooks must not be affected');
  other.retire();
  requests.abort();
  const messages = new Set(await Promise.all(running));
  assert.deepEqual(
    messages,
    new Set([`${post('/never')}context canceled`, 'failed to call webhook: context canceled']),
  );
  assert.equal(server.reviews.length, seen + 33, 'waiting calls must not be sent');
});

test('a webhook that is retired during a call completes it', async () => {
  let answer: () => void = () => {};
  server.misbehave('/later', (response, _socket, review) => {
    answer = () => sendJson(response, buildReviewAnswer(review, { warnings: ['late'] }));
  });
  const client = aClient(at('/later'));
  const seen = server.reviews.length;
  const call = ask(client);
  await server.awaitReviews(seen + 1);
  client.retire();
  answer();
  assert.deepEqual((await call).warnings, ['late']);
});

function local(review: LocalService['review']): { client: WebhookClient; clock: ManualClock } {
  const services = new LocalServices();
  services.register('golden', 'inside', review === undefined ? {} : { review });
  const clock = new ManualClock();
  const config = { service: { namespace: 'golden', name: 'inside', path: '/check' } };
  return { client: aClient(config, { services, clock }), clock };
}

test('a local service is called as a function, with copies', async () => {
  const attributes = anAdmission();
  const before = JSON.stringify(attributes.object);
  let path = '';
  let kept: { response: { warnings: string[] } } | undefined;
  const { client } = local(async (asked, review) => {
    path = asked;
    const { request } = review as { request: { object: { metadata: { name: string } } } };
    request.object.metadata.name = 'changed';
    return (kept = buildReviewAnswer(review, { warnings: ['hello'] }));
  });
  const verdict = await client.call(hook, attributes, configMaps, false);
  assert.equal(path, '/check?timeout=10s');
  assert.equal(JSON.stringify(attributes.object), before);
  kept!.response.warnings.push('more');
  assert.deepEqual(verdict.warnings, ['hello']);
});

const inside: Record<string, { review: LocalService['review']; want: RegExp }> = {
  'it throws': {
    review: async () => {
      throw new Error('out of ideas');
    },
    want: /^failed to call webhook: out of ideas$/,
  },
  'it throws before it returns a promise': {
    review: () => {
      throw new Error('at once');
    },
    want: /^failed to call webhook: at once$/,
  },
  'it returns nothing': {
    review: async () => undefined,
    want: /^failed to call webhook: couldn't get version\/kind; json parse error: json: cannot unmarshal object/,
  },
  'its response is not JSON': {
    review: async () => {
      const loop: Record<string, unknown> = {};
      return (loop['self'] = loop);
    },
    want: /^failed to call webhook: Converting circular structure to JSON/,
  },
  'its response is too large': {
    review: async () => 'a'.repeat(MAX_RESPONSE_BYTES),
    want: /^failed to call webhook: the response is larger than/,
  },
  'it has no webhook, and the Service does not exist': {
    review: undefined,
    want: /Post "https:\/\/inside\.golden\.svc:443\/check\?timeout=10s": service "inside" not found$/,
  },
};

for (const [name, { review, want }] of Object.entries(inside)) {
  test(`a local service fails: ${name}`, async () => {
    await assert.rejects(ask(local(review).client), (error: Error) => want.test(error.message));
  });
}

test('a local service that never responds times out', async () => {
  let heard: AbortSignal | undefined;
  const { client, clock } = local((_path, _review, { signal }) => {
    heard = signal;
    return new Promise(() => {});
  });
  const ended = assert.rejects(ask(client), { message: 'failed to call webhook: context deadline exceeded' });
  clock.expire();
  await ended;
  assert.equal(heard?.aborted, true);
});
