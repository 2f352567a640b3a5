/** Tests with real servers on this machine, over real TLS. */
import assert from 'node:assert/strict';
import type { TLSSocket } from 'node:tls';
import { after, test } from 'node:test';
import { createHttpTransport } from '#client/http.ts';
import type { HttpTransport, HttpTransportOptions } from '#client/http.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { TEST_CA, TEST_CLIENT_CERTIFICATE, TEST_CLIENT_KEY } from '#client/testing/test-certificates.ts';
import { TestProxy, startHttp1Server, startHttp2Server } from '#client/testing/tls-server.ts';
import type { TestHandler, TestServer } from '#client/testing/tls-server.ts';
import { TransportError } from '#client/transport.ts';
import { ApiError, conflict } from '#kube/api-error.ts';
import { systemClock } from '#lib/clock.ts';

const cleanUp: (() => unknown)[] = [];
after(async () => {
  for (const end of cleanUp.reverse()) await end();
});

function transportTo(
  port: number,
  overrides: Partial<ClusterAccess> = {},
  options: Partial<HttpTransportOptions> = {},
): HttpTransport {
  const access = {
    server: `https://127.0.0.1:${port}`,
    namespace: 'default',
    insecureSkipTlsVerify: false,
    ...overrides,
  };
  const transport = createHttpTransport(
    { certificateAuthority: TEST_CA, ...access },
    { userAgent: 'test', clock: systemClock, ...options },
  );
  cleanUp.push(() => transport.close());
  return transport;
}

async function serve(
  handler: TestHandler,
  options?: { port?: number; maxConcurrentStreams?: number },
): Promise<TestServer> {
  const server = await startHttp2Server(handler, options);
  cleanUp.push(() => server.stop());
  return server;
}

/** Responds with what it received. `/lines` stays open after two and a half lines, `/never` does not respond. */
const echo: TestHandler = (request, response) => {
  if (request.url.startsWith('/lines')) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"n":1}\n{"n":2}\n{"n":');
    return;
  }
  if (request.url.startsWith('/never')) return;
  let body = '';
  request.on('data', (chunk: Buffer) => (body += chunk.toString()));
  request.on('end', () => {
    const certificate = (request.socket as TLSSocket).getPeerCertificate?.();
    const received = {
      url: request.url,
      method: request.method,
      version: request.httpVersion,
      headers: request.headers,
      user: certificate?.subject?.CN,
      body,
    };
    response.writeHead(200, { 'content-type': 'application/json', warning: '299 - "be \\"careful\\""' });
    response.end(JSON.stringify(received));
  });
};

interface Echo {
  url: string;
  method: string;
  version: string;
  headers: Record<string, string>;
  user?: string;
  body: string;
}

const get = async (transport: HttpTransport, path = '/x'): Promise<Echo> =>
  (await transport.request({ method: 'GET', path })).body as Echo;

async function collect(lines: AsyncIterable<unknown>, into: unknown[]): Promise<void> {
  for await (const line of lines) into.push(line);
}

/** Reads the two complete lines of `/lines`; the third never arrives. */
async function openLines(transport: HttpTransport, signal?: AbortSignal) {
  const lines = transport.stream({ method: 'GET', path: '/lines', signal })[Symbol.asyncIterator]();
  assert.deepEqual((await lines.next()).value, { n: 1 });
  assert.deepEqual((await lines.next()).value, { n: 2 });
  return lines;
}

for (const [protocol, start, version] of [
  ['HTTP/2', startHttp2Server, '2.0'],
  ['HTTP/1.1', startHttp1Server, '1.1'],
] as const) {
  test(`${protocol}: sends the request below the server's path and reads the response`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const base = `https://127.0.0.1:${server.port}/k8s/cluster-1/`;
    const transport = transportTo(server.port, { server: base, token: 'secret' });
    const query = new URLSearchParams({ fieldManager: 'a b' });
    const request = {
      method: 'PATCH',
      path: '/api/v1/x',
      query,
      body: { a: 'ä' },
      contentType: 'application/merge-patch+json',
    } as const;
    const { status, body, warnings } = await transport.request(request);
    const { url, method, headers, body: sent, version: usedVersion } = body as Echo;
    assert.deepEqual(
      [status, method, url, usedVersion],
      [200, 'PATCH', '/k8s/cluster-1/api/v1/x?fieldManager=a+b', version],
    );
    assert.equal(sent, '{"a":"ä"}');
    assert.deepEqual(warnings, ['be "careful"']);
    assert.equal(headers['content-type'], 'application/merge-patch+json');
    assert.equal(headers['authorization'], 'Bearer secret');
    assert.equal(headers['user-agent'], 'test');
  });

  test(`${protocol}: authenticates with the client certificate and reuses connections`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const credentials = { clientCertificate: TEST_CLIENT_CERTIFICATE, clientKey: TEST_CLIENT_KEY };
    const transport = transportTo(server.port, credentials);
    assert.equal((await get(transport)).user, 'selfsame-tester');
    const before = server.connections();
    for (let i = 0; i < 5; i++) await get(transport);
    assert.equal(server.connections(), before);
  });

  test(`${protocol}: uses renewed credentials for new requests while open requests continue`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port);
    const leaving = new AbortController();
    const lines = await openLines(transport, leaving.signal);
    assert.equal((await get(transport)).user, undefined);
    transport.renew({
      server: `https://127.0.0.1:${server.port}`,
      namespace: 'default',
      insecureSkipTlsVerify: false,
      certificateAuthority: TEST_CA,
      clientCertificate: TEST_CLIENT_CERTIFICATE,
      clientKey: TEST_CLIENT_KEY,
    });
    assert.equal((await get(transport)).user, 'selfsame-tester');
    const before = server.connections();
    assert.equal((await get(transport)).user, 'selfsame-tester');
    assert.equal(server.connections(), before);
    const next = lines.next();
    leaving.abort(new Error('aborted by us'));
    await assert.rejects(next, /aborted by us/);
  });

  test(`${protocol}: yields lines as they arrive, and closes the stream at the server when left or aborted`, async () => {
    let closed: () => void;
    const handler: TestHandler = (request, response) => {
      response.on('close', () => closed());
      echo(request, response);
    };
    const server = await start(handler);
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port);
    const left = new Promise<void>((resolve) => (closed = resolve));
    const lines = await openLines(transport);
    await lines.return?.();
    await left;
    const aborted = new Promise<void>((resolve) => (closed = resolve));
    const controller = new AbortController();
    const more = await openLines(transport, controller.signal);
    const next = more.next();
    controller.abort(new Error('enough'));
    await assert.rejects(next, /^Error: enough$/);
    await aborted;
    assert.equal((await get(transport)).url, '/x');
  });

  test(`${protocol}: throws the abort reason, before and after the request was sent`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port);
    const early = transport.request({ method: 'GET', path: '/x', signal: AbortSignal.abort(new Error('early')) });
    await assert.rejects(early, /^Error: early$/);
    const controller = new AbortController();
    const waiting = transport.request({ method: 'GET', path: '/never', signal: controller.signal });
    await get(transport);
    controller.abort(new Error('late'));
    await assert.rejects(waiting, /^Error: late$/);
  });

  test(`${protocol}: a reset inside a line fails only the requests on that connection`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const proxy = await TestProxy.start(server.port);
    cleanUp.push(() => proxy.stop());
    const transport = transportTo(proxy.port);
    const lines = await openLines(transport);
    const waiting = transport.request({ method: 'GET', path: '/never' });
    await get(transport);
    const failures = [assert.rejects(lines.next(), TransportError), assert.rejects(waiting, TransportError)];
    proxy.reset();
    await Promise.all(failures);
    assert.equal((await get(transport)).url, '/x');
  });

  test(`${protocol}: connects again to a server that restarts on the same port`, async () => {
    const first = await start(echo);
    const transport = transportTo(first.port);
    const lines = await openLines(transport);
    const next = assert.rejects(lines.next(), TransportError);
    await first.stop();
    await next;
    await assert.rejects(
      get(transport),
      (error: Error) => error instanceof TransportError && /ECONNREFUSED/.test(error.message),
    );
    const second = await start(echo, { port: first.port });
    cleanUp.push(() => second.stop());
    assert.equal((await get(transport)).version, version);
  });

  test(`${protocol}: refuses responses and lines that are too long`, async () => {
    const server = await start((_, response) => response.end(`"${'x'.repeat(100_000)}"\n`));
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port, {}, { maxLineBytes: 1000 });
    const response = transport.request({ method: 'GET', path: '/', maxResponseBytes: 99_999 });
    await assert.rejects(response, /Cannot GET \/: the response is larger than 99999 bytes/);
    assert.equal((await transport.request({ method: 'GET', path: '/', maxResponseBytes: 200_000 })).status, 200);
    await assert.rejects(
      collect(transport.stream({ method: 'GET', path: '/' }), []),
      /a line is longer than 1000 bytes/,
    );
  });
}

test('throws a Status as the same ApiError', async () => {
  const error = conflict({ group: 'test.local', plural: 'gadgets' }, 'a', 'no');
  const server = await serve((_, response) => {
    response.writeHead(409);
    response.end(JSON.stringify(error.toStatus()));
  });
  const transport = transportTo(server.port);
  const isSameError = (thrown: unknown): boolean => {
    assert.ok(thrown instanceof ApiError);
    assert.deepEqual(thrown.toStatus(), error.toStatus());
    return true;
  };
  await assert.rejects(get(transport), isSameError);
  await assert.rejects(collect(transport.stream({ method: 'GET', path: '/' }), []), isSameError);
});

test('throws for a response that is not JSON or is incomplete', async () => {
  const server = await serve((request, response) => {
    if (request.url === '/html') return void response.end('<html>');
    response.writeHead(200);
    response.write('{"a":1}\n{"b":2', () => response.stream.close(2));
  });
  const transport = transportTo(server.port);
  await assert.rejects(get(transport, '/html'), /Cannot read the response to GET \/html: it is not JSON/);
  await assert.rejects(get(transport, '/cut'), TransportError);
  await assert.rejects(collect(transport.stream({ method: 'GET', path: '/cut' }), []), TransportError);
});

test('reads a token file again after the server has refused the token', async () => {
  const server = await serve((request, response) => {
    if (request.headers.authorization === 'Bearer new') return echo(request, response);
    response.writeHead(401);
    response.end();
  });
  let token = 'old';
  const transport = transportTo(server.port, { tokenFile: '/token' }, { readFile: async () => token });
  await assert.rejects(
    get(transport),
    (error: unknown) => error instanceof ApiError && error.reason === 'Unauthorized',
  );
  token = 'new';
  assert.equal((await get(transport)).headers['authorization'], 'Bearer new');
});

const trust: Record<string, { access: Partial<ClusterAccess>; want: RegExp | undefined }> = {
  'accepts the name in the certificate': { access: { serverName: 'api.test' }, want: undefined },
  'refuses another name': { access: { serverName: 'evil.test' }, want: /Hostname\/IP does not match/ },
  'refuses an unknown authority': {
    access: { certificateAuthority: undefined },
    want: /unable to verify|self-signed|unable to get/,
  },
  'accepts any certificate without verification': {
    access: { certificateAuthority: undefined, insecureSkipTlsVerify: true },
    want: undefined,
  },
};

for (const [sentence, { access, want }] of Object.entries(trust)) {
  test(`server certificate: ${sentence}`, async () => {
    const server = await serve(echo);
    const response = get(transportTo(server.port, access));
    if (want === undefined) assert.equal((await response).url, '/x');
    else await assert.rejects(response, want);
  });
}

test('after GOAWAY, running requests complete and new ones use another connection', async () => {
  const pending: (() => void)[] = [];
  const server = await serve((request, response) => {
    if (request.url === '/slow') pending.push(() => response.end('"done"'));
    else response.end('"ok"');
  });
  const transport = transportTo(server.port);
  const slow = transport.request({ method: 'GET', path: '/slow' });
  await transport.request({ method: 'GET', path: '/x' });
  assert.equal(server.connections(), 1);
  const [session] = server.sessions;
  session!.goaway(0);
  for (let i = 0; i < 3; i++) assert.equal((await transport.request({ method: 'GET', path: '/x' })).body, 'ok');
  assert.equal(server.connections(), 2);
  pending[0]!();
  assert.equal((await slow).body, 'done');
});

test('a GOAWAY with an error fails running requests, and the next request connects again', async () => {
  const server = await serve(echo);
  const transport = transportTo(server.port);
  const lines = await openLines(transport);
  const next = assert.rejects(lines.next(), TransportError);
  for (const session of server.sessions) session.destroy(undefined, 2);
  await next;
  assert.equal((await get(transport)).url, '/x');
});

test('opens another connection if the server allows no more streams on the first', async () => {
  const closed: Promise<void>[] = [];
  const handler: TestHandler = (request, response) => {
    closed.push(new Promise((resolve) => response.stream.on('close', resolve)));
    echo(request, response);
  };
  const server = await serve(handler, { maxConcurrentStreams: 2 });
  const transport = transportTo(server.port);
  const lines = [await openLines(transport), await openLines(transport), await openLines(transport)];
  assert.equal((await get(transport)).url, '/x');
  assert.equal(server.connections(), 2);
  for (const line of lines) await line.return?.();
  await Promise.all(closed);
  await openLines(transport);
  await openLines(transport);
  await openLines(transport);
  assert.equal(server.connections(), 2, 'free streams are used again');
});

test('detects a server that no longer responds with pings', async () => {
  const clock = new FakeClock();
  const server = await serve(echo);
  const proxy = await TestProxy.start(server.port);
  cleanUp.push(() => proxy.stop());
  const transport = transportTo(proxy.port, {}, { clock });
  const lines = await openLines(transport);
  // The first ping is answered; only then the proxy drops everything.
  await clock.advance(30_000);
  await get(transport);
  proxy.dropData();
  const next = assert.rejects(lines.next(), /the server did not answer a ping/);
  await clock.advance(30_000);
  await clock.advance(15_000);
  await next;
  assert.equal((await get(transport)).url, '/x');
});

test('a request times out without a response; a stream may be silent for long', async () => {
  const clock = new FakeClock();
  const server = await serve(echo);
  const transport = transportTo(server.port, {}, { clock, timeoutMs: 5000 });
  const lines = await openLines(transport);
  const waiting = assert.rejects(transport.request({ method: 'GET', path: '/never' }), /no response within 5 seconds/);
  await get(transport);
  await clock.advance(5000);
  await waiting;
  const last = lines.next();
  transport.close();
  await assert.rejects(last, (error: Error) => !error.message.includes('within'));
});

test('closing aborts a connection that is being opened', async () => {
  const { createServer } = await import('node:net');
  const silent = createServer().listen(0, '127.0.0.1');
  cleanUp.push(() => silent.close());
  const left = new Promise<void>((resolve) => {
    silent.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.on('close', () => resolve());
      socket.resume();
      transport.close();
    });
  });
  await new Promise((resolve) => silent.once('listening', resolve));
  const transport = transportTo((silent.address() as { port: number }).port);
  await assert.rejects(transport.request({ method: 'GET', path: '/' }), TransportError);
  await left;
});

test('a closed transport refuses requests', async () => {
  const server = await serve(echo);
  const transport = transportTo(server.port);
  await get(transport);
  transport.close();
  await assert.rejects(get(transport), /the client is closed/);
});

test('uses HTTP/2 after a server without it was replaced by one with it', async () => {
  const old = await startHttp1Server(echo);
  cleanUp.push(() => old.stop());
  const proxy = await TestProxy.start(old.port);
  cleanUp.push(() => proxy.stop());
  const transport = transportTo(proxy.port);
  assert.equal((await get(transport)).version, '1.1');
  const server = await serve(echo);
  const waiting = assert.rejects(transport.request({ method: 'GET', path: '/never' }), TransportError);
  await get(transport);
  proxy.retarget(server.port);
  await old.stop();
  await waiting;
  assert.equal((await get(transport)).version, '2.0');
});
