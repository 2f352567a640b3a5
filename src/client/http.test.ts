/** Against real servers on this machine, over real TLS. */
import assert from 'node:assert/strict';
import type { TLSSocket } from 'node:tls';
import { after, test } from 'node:test';
import { createHttpTransport } from '#client/http.ts';
import type { HttpTransport, HttpTransportOptions } from '#client/http.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
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

/** Answers with what it was asked; `/lines` is a stream that stays open after two lines and a half. */
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
    const answer = {
      url: request.url,
      method: request.method,
      version: request.httpVersion,
      headers: request.headers,
      user: certificate?.subject?.CN,
      body,
    };
    response.writeHead(200, { 'content-type': 'application/json', warning: '299 - "be \\"careful\\""' });
    response.end(JSON.stringify(answer));
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

const ask = async (transport: HttpTransport, path = '/x'): Promise<Echo> =>
  (await transport.request({ method: 'GET', path })).body as Echo;

async function collect(lines: AsyncIterable<unknown>, into: unknown[]): Promise<void> {
  for await (const line of lines) into.push(line);
}

/** Reads the two whole lines of `/lines`; the third never comes. */
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
  test(`${protocol}: sends what it is told, below the server's path, and reads the answer`, async () => {
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
    const { url, method, headers, body: sent, version: spoken } = body as Echo;
    assert.deepEqual(
      [status, method, url, spoken],
      [200, 'PATCH', '/k8s/cluster-1/api/v1/x?fieldManager=a+b', version],
    );
    assert.equal(sent, '{"a":"ä"}');
    assert.deepEqual(warnings, ['be "careful"']);
    assert.equal(headers['content-type'], 'application/merge-patch+json');
    assert.equal(headers['authorization'], 'Bearer secret');
    assert.equal(headers['user-agent'], 'test');
  });

  test(`${protocol}: the client certificate says who we are; connections are used again`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const proof = { clientCertificate: TEST_CLIENT_CERTIFICATE, clientKey: TEST_CLIENT_KEY };
    const transport = transportTo(server.port, proof);
    assert.equal((await ask(transport)).user, 'selfsame-tester');
    const before = server.connections();
    for (let i = 0; i < 5; i++) await ask(transport);
    assert.equal(server.connections(), before);
  });

  test(`${protocol}: renewed, it is somebody else to the server, and what is open goes on`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port);
    const leaving = new AbortController();
    const lines = await openLines(transport, leaving.signal);
    assert.equal((await ask(transport)).user, undefined);
    transport.renew({
      server: `https://127.0.0.1:${server.port}`,
      namespace: 'default',
      insecureSkipTlsVerify: false,
      certificateAuthority: TEST_CA,
      clientCertificate: TEST_CLIENT_CERTIFICATE,
      clientKey: TEST_CLIENT_KEY,
    });
    assert.equal((await ask(transport)).user, 'selfsame-tester');
    const before = server.connections();
    assert.equal((await ask(transport)).user, 'selfsame-tester');
    assert.equal(server.connections(), before);
    const next = lines.next();
    leaving.abort(new Error('left by us'));
    await assert.rejects(next, /left by us/);
  });

  test(`${protocol}: lines come as they are sent; leaving or an abort closes the stream at the server`, async () => {
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
    assert.equal((await ask(transport)).url, '/x');
  });

  test(`${protocol}: an aborted request throws the reason, before, while and after it is sent`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port);
    const early = transport.request({ method: 'GET', path: '/x', signal: AbortSignal.abort(new Error('early')) });
    await assert.rejects(early, /^Error: early$/);
    const controller = new AbortController();
    const waiting = transport.request({ method: 'GET', path: '/never', signal: controller.signal });
    await ask(transport);
    controller.abort(new Error('late'));
    await assert.rejects(waiting, /^Error: late$/);
  });

  test(`${protocol}: a reset in the middle of a line fails that stream only; the next request connects again`, async () => {
    const server = await start(echo);
    cleanUp.push(() => server.stop());
    const proxy = await TestProxy.start(server.port);
    cleanUp.push(() => proxy.stop());
    const transport = transportTo(proxy.port);
    const lines = await openLines(transport);
    const waiting = transport.request({ method: 'GET', path: '/never' });
    await ask(transport);
    const failures = [assert.rejects(lines.next(), TransportError), assert.rejects(waiting, TransportError)];
    proxy.reset();
    await Promise.all(failures);
    assert.equal((await ask(transport)).url, '/x');
  });

  test(`${protocol}: a server that restarts is found again on the same port`, async () => {
    const first = await start(echo);
    const transport = transportTo(first.port);
    const lines = await openLines(transport);
    const next = assert.rejects(lines.next(), TransportError);
    await first.stop();
    await next;
    await assert.rejects(
      ask(transport),
      (error: Error) => error instanceof TransportError && /ECONNREFUSED/.test(error.message),
    );
    const second = await start(echo, { port: first.port });
    cleanUp.push(() => second.stop());
    assert.equal((await ask(transport)).version, version);
  });

  test(`${protocol}: answers and lines that are too long are refused`, async () => {
    const server = await start((_, response) => response.end(`"${'x'.repeat(100_000)}"\n`));
    cleanUp.push(() => server.stop());
    const transport = transportTo(server.port, {}, { maxLineBytes: 1000 });
    const answer = transport.request({ method: 'GET', path: '/', maxAnswerBytes: 99_999 });
    await assert.rejects(answer, /Cannot GET \/: the answer is longer than 99999 bytes/);
    assert.equal((await transport.request({ method: 'GET', path: '/', maxAnswerBytes: 200_000 })).status, 200);
    await assert.rejects(
      collect(transport.stream({ method: 'GET', path: '/' }), []),
      /a line is longer than 1000 bytes/,
    );
  });
}

test('a Status is thrown as the ApiError that it was', async () => {
  const error = conflict({ group: 'test.local', plural: 'gadgets' }, 'a', 'no');
  const server = await serve((_, response) => {
    response.writeHead(409);
    response.end(JSON.stringify(error.toStatus()));
  });
  const transport = transportTo(server.port);
  const same = (thrown: unknown): boolean => {
    assert.ok(thrown instanceof ApiError);
    assert.deepEqual(thrown.toStatus(), error.toStatus());
    return true;
  };
  await assert.rejects(ask(transport), same);
  await assert.rejects(collect(transport.stream({ method: 'GET', path: '/' }), []), same);
});

test('an answer that is not JSON, or is cut short, is an error', async () => {
  const server = await serve((request, response) => {
    if (request.url === '/html') return void response.end('<html>');
    response.writeHead(200);
    response.write('{"a":1}\n{"b":2', () => response.stream.close(2));
  });
  const transport = transportTo(server.port);
  await assert.rejects(ask(transport, '/html'), /Cannot read the answer to GET \/html: it is not JSON/);
  await assert.rejects(ask(transport, '/cut'), TransportError);
  await assert.rejects(collect(transport.stream({ method: 'GET', path: '/cut' }), []), TransportError);
});

test('a token file is read again when the server refuses the token', async () => {
  const server = await serve((request, response) => {
    if (request.headers.authorization === 'Bearer new') return echo(request, response);
    response.writeHead(401);
    response.end();
  });
  let token = 'old';
  const transport = transportTo(server.port, { tokenFile: '/token' }, { readFile: async () => token });
  await assert.rejects(
    ask(transport),
    (error: unknown) => error instanceof ApiError && error.reason === 'Unauthorized',
  );
  token = 'new';
  assert.equal((await ask(transport)).headers['authorization'], 'Bearer new');
});

const trust: Record<string, { access: Partial<ClusterAccess>; want: RegExp | undefined }> = {
  'the name that the certificate has': { access: { serverName: 'api.test' }, want: undefined },
  'another name': { access: { serverName: 'evil.test' }, want: /Hostname\/IP does not match/ },
  'an unknown authority': {
    access: { certificateAuthority: undefined },
    want: /unable to verify|self-signed|unable to get/,
  },
  'no verification at all': {
    access: { certificateAuthority: undefined, insecureSkipTlsVerify: true },
    want: undefined,
  },
};

for (const [sentence, { access, want }] of Object.entries(trust)) {
  test(`the server's certificate is checked: ${sentence}`, async () => {
    const server = await serve(echo);
    const answer = ask(transportTo(server.port, access));
    if (want === undefined) assert.equal((await answer).url, '/x');
    else await assert.rejects(answer, want);
  });
}

test('after GOAWAY running requests end as they should, and new ones take another connection', async () => {
  const held: (() => void)[] = [];
  const server = await serve((request, response) => {
    if (request.url === '/slow') held.push(() => response.end('"done"'));
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
  held[0]!();
  assert.equal((await slow).body, 'done');
});

test('a server that goes away with an error fails what runs, and the next request connects again', async () => {
  const server = await serve(echo);
  const transport = transportTo(server.port);
  const lines = await openLines(transport);
  const next = assert.rejects(lines.next(), TransportError);
  for (const session of server.sessions) session.destroy(undefined, 2);
  await next;
  assert.equal((await ask(transport)).url, '/x');
});

test('more streams than the server takes on one connection open another', async () => {
  const closed: Promise<void>[] = [];
  const handler: TestHandler = (request, response) => {
    closed.push(new Promise((resolve) => response.stream.on('close', resolve)));
    echo(request, response);
  };
  const server = await serve(handler, { maxConcurrentStreams: 2 });
  const transport = transportTo(server.port);
  const lines = [await openLines(transport), await openLines(transport), await openLines(transport)];
  assert.equal((await ask(transport)).url, '/x');
  assert.equal(server.connections(), 2);
  for (const line of lines) await line.return?.();
  await Promise.all(closed);
  await openLines(transport);
  await openLines(transport);
  await openLines(transport);
  assert.equal(server.connections(), 2, 'places that were left are taken again');
});

test('a peer that vanished without a word is found out by pings', async () => {
  const clock = new FakeClock();
  const server = await serve(echo);
  const proxy = await TestProxy.start(server.port);
  cleanUp.push(() => proxy.stop());
  const transport = transportTo(proxy.port, {}, { clock });
  const lines = await openLines(transport);
  // The first ping is answered; only then does the way become a black hole.
  await clock.advance(30_000);
  await ask(transport);
  proxy.swallow();
  const next = assert.rejects(lines.next(), /the server did not answer a ping/);
  await clock.advance(30_000);
  await clock.advance(15_000);
  await next;
  assert.equal((await ask(transport)).url, '/x');
});

test('a request that is not answered in time fails; a stream may be silent for long', async () => {
  const clock = new FakeClock();
  const server = await serve(echo);
  const transport = transportTo(server.port, {}, { clock, timeoutMs: 5000 });
  const lines = await openLines(transport);
  const waiting = assert.rejects(transport.request({ method: 'GET', path: '/never' }), /no answer within 5 seconds/);
  await ask(transport);
  await clock.advance(5000);
  await waiting;
  const last = lines.next();
  transport.close();
  await assert.rejects(last, (error: Error) => !error.message.includes('within'));
});

test('closing ends a connection that is only being opened', async () => {
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

test('a closed transport takes no more requests', async () => {
  const server = await serve(echo);
  const transport = transportTo(server.port);
  await ask(transport);
  transport.close();
  await assert.rejects(ask(transport), /the client is closed/);
});

test('a server with HTTP/2 that takes the place of one without is spoken to in HTTP/2', async () => {
  const old = await startHttp1Server(echo);
  cleanUp.push(() => old.stop());
  const proxy = await TestProxy.start(old.port);
  cleanUp.push(() => proxy.stop());
  const transport = transportTo(proxy.port);
  assert.equal((await ask(transport)).version, '1.1');
  const server = await serve(echo);
  const waiting = assert.rejects(transport.request({ method: 'GET', path: '/never' }), TransportError);
  await ask(transport);
  proxy.retarget(server.port);
  await old.stop();
  await waiting;
  assert.equal((await ask(transport)).version, '2.0');
});
