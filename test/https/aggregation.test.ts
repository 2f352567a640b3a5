/** Requests to aggregated APIs over real TLS on both sides: the forwarded identity, removed headers, and streamed bodies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { after, before, beforeEach, suite, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { openTls, untilClosed } from '#test/https/raw-tls.ts';
import { echo, sendJson, startExtensionServer, type ExtensionServer } from '#test/support/extension-server.ts';
import { startFrontServer, type FrontServer } from '#test/support/front-server.ts';
import { sendHttp1Request, sendHttp2Request, openHttp2Session, type RawRequest } from '#test/support/raw-https.ts';
import type { Scope } from '#test/support/server-process.ts';

const GROUP = 'ext.golden.local';
const ROOT = `/apis/${GROUP}/v1`;
const THINGS = `${ROOT}/namespaces/default/things`;

suite('an aggregated API over HTTPS', () => {
  let front: FrontServer;
  let server: ExtensionServer;
  const cleanups: (() => void)[] = [];
  const scope: Scope = { after: (fn) => cleanups.push(fn) };

  before(async () => {
    front = await startFrontServer(scope);
    server = await startExtensionServer({ hosts: ['ext.golden.svc'], clientCa: front.caPem });
    await front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } });
    const metadata = { name: 'ext', namespace: 'golden' };
    const spec = { externalIPs: ['127.0.0.1'], ports: [{ port: server.port }] };
    await front.create('/api/v1/namespaces/golden/services', { apiVersion: 'v1', kind: 'Service', metadata, spec });
    await register(`v1.${GROUP}`, { caBundle: server.caBundle });
    await front.core.aggregation.settled();
  });
  beforeEach(() => void (server.requests.length = 0));
  after(async () => {
    await front.stop();
    await server.stop();
    cleanups.forEach((cleanup) => cleanup());
  });

  function register(name: string, spec: object, service: object = {}) {
    const [version = '', ...group] = name.split('.');
    const reference = { namespace: 'golden', name: 'ext', port: server.port, ...service };
    return front.create('/apis/apiregistration.k8s.io/v1/apiservices', {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name },
      spec: {
        group: group.join('.'),
        version,
        groupPriorityMinimum: 1000,
        versionPriority: 15,
        service: reference,
        ...spec,
      },
    });
  }

  const ask = (path: string, request: Partial<RawRequest> = {}, access: ClusterAccess = front.admin) =>
    sendHttp1Request(access, { path, ...request });

  test('the server gets the user in headers, and headers of the client with these names are removed', async () => {
    server.on(THINGS, (_, response) => sendJson(response, { kind: 'ThingList', items: [] }));
    const headers = {
      'x-remote-user': 'root',
      'x-remote-group': 'system:masters',
      'x-remote-extra-scopes': 'all',
      'x-remote-uid': '0',
      'x-forwarded-for': '10.9.8.7',
      'x-custom': 'kept',
      connection: 'x-private',
      'x-private': 'dropped',
      accept: 'application/json',
    };
    const answer = await ask(`${THINGS}?limit=5&labelSelector=a%3Db`, { headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.text, '{"kind":"ThingList","items":[]}');
    const [seen] = server.requests;
    assert.ok(seen);
    assert.equal(seen.peer, 'front-proxy-client');
    assert.equal(seen.url, `${THINGS}?limit=5&labelSelector=a%3Db`);
    const { host, ...forwarded } = seen.headers;
    assert.equal(host, `ext.golden.svc:${server.port}`);
    assert.deepEqual(forwarded, {
      'x-remote-user': 'admin',
      'x-remote-group': 'system:masters, system:authenticated',
      'x-custom': 'kept',
      accept: 'application/json',
      connection: 'keep-alive',
    });
  });

  test('the impersonated user is forwarded, with extras', async () => {
    server.on(THINGS, (_, response) => sendJson(response, {}));
    const headers = {
      'impersonate-user': 'jürgen',
      'impersonate-group': 'system:masters',
      'impersonate-uid': 'u-1',
      'impersonate-extra-example.com%2fscope': 'read',
    };
    assert.equal((await ask(THINGS, { headers })).status, 200);
    const forwarded = server.requests[0]!.headers;
    // The client of the test sends one byte per character, and so does the proxy.
    assert.equal(Buffer.from(String(forwarded['x-remote-user']), 'latin1').toString('utf8'), 'jürgen');
    assert.equal(forwarded['x-remote-uid'], 'u-1');
    assert.equal(forwarded['x-remote-group'], 'system:masters, system:authenticated');
    assert.equal(forwarded['x-remote-extra-example.com%2fscope'], 'read');
    assert.ok(!Object.keys(forwarded).some((name) => name.startsWith('impersonate')));
  });

  test('a user without rights is refused before the request is forwarded', async () => {
    const answer = await ask(THINGS, {}, front.accessOf('mallory'));
    assert.equal(answer.status, 403);
    assert.match(answer.text, /things.ext.golden.local is forbidden: User \\"mallory\\" cannot list resource/);
    assert.deepEqual(server.requests, []);
  });

  const ambiguous: Record<string, string> = {
    'dot segments': `${ROOT}/namespaces/default/../kube-system`,
    'encoded dot segments': `${ROOT}/namespaces/default/%2e%2E/secrets`,
    'an encoded slash': `${THINGS}/a%2Fstatus`,
  };
  for (const [name, path] of Object.entries(ambiguous)) {
    test(`an ambiguous path is not forwarded: ${name}`, async (t) => {
      const socket = await openTls(front.admin, 'http/1.1');
      t.after(() => socket.destroy());
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      assert.match(await untilClosed(socket), /^HTTP\/1.1 404 /);
      assert.deepEqual(server.requests, []);
    });
  }

  for (const protocol of ['HTTP/1.1', 'HTTP/2'] as const) {
    test(`${protocol}: bodies pass in both directions, chunked and with a length`, async (t) => {
      const big = Buffer.alloc(4 * 1024 * 1024, 'x');
      server.on(THINGS, (request, response) => {
        response.writeHead(request.headers['x-status'] === undefined ? 200 : 201, { 'x-answer': 'yes' });
        request.pipe(response);
      });
      const session = protocol === 'HTTP/2' ? openHttp2Session(t, front.admin) : undefined;
      const send = (request: RawRequest) =>
        session === undefined
          ? sendHttp1Request(front.admin, request)
          : sendHttp2Request(session, front.admin, request);
      const sent = await send({ method: 'POST', path: THINGS, body: big });
      assert.equal(sent.text.length, big.length);
      const length = { 'content-length': '5', 'x-status': '1' };
      const whole = await send({ method: 'PUT', path: THINGS, body: 'hello', headers: length });
      assert.deepEqual([whole.status, whole.text, whole.headers['x-answer']], [201, 'hello', 'yes']);
      const removed = await send({
        method: 'DELETE',
        path: THINGS,
        body: '{"a":1}',
        headers: { 'content-length': '7' },
      });
      assert.equal(removed.text, '{"a":1}');
    });
  }

  test('a watch streams each event, and the request ends when the client disconnects', async () => {
    const opened = new Promise<[IncomingMessage, NodeJS.WritableStream]>((resolve) => {
      server.on(THINGS, (request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.flushHeaders();
        resolve([request, response]);
      });
    });
    const { hostname, port } = new URL(front.admin.server);
    const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = front.admin;
    const outgoing = httpsRequest({ host: hostname, port, path: `${THINGS}?watch=1`, ca, cert, key, agent: false });
    outgoing.on('error', () => {});
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(answer.statusCode, 200);
    const [request, response] = await opened;
    for (const line of ['{"type":"ADDED"}\n', '{"type":"MODIFIED"}\n']) {
      response.write(line);
      const [chunk] = (await once(answer, 'data')) as [Buffer];
      assert.equal(chunk.toString(), line);
    }
    const gone = once(request.socket, 'close');
    outgoing.destroy();
    await gone;
  });

  test('an incomplete answer is not forwarded as complete', async (t) => {
    server.on(THINGS, (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"items":[');
      setImmediate(() => response.destroy());
    });
    await assert.rejects(ask(THINGS), /aborted|socket hang up|in its midst|ECONNRESET/);
    await assert.rejects(
      sendHttp2Request(openHttp2Session(t, front.admin), front.admin, { path: THINGS }),
      /INTERNAL_ERROR/,
    );
    server.on(THINGS, (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('short');
      setImmediate(() => response.destroy());
    });
    const answer = await ask(THINGS);
    assert.deepEqual([answer.status, answer.text], [503, 'error trying to reach service: unexpected EOF\n']);
  });

  test('a refusal and its headers are forwarded, except for connection headers', async () => {
    server.on(THINGS, (_, response) => {
      response.writeHead(409, { 'x-why': 'taken', warning: '299 - "old"', 'keep-alive': 'timeout=9' }).end('no');
    });
    const { status, text, headers } = await ask(THINGS);
    assert.deepEqual([status, text, headers['x-why'], headers['warning']], [409, 'no', 'taken', '299 - "old"']);
    assert.notEqual(headers['keep-alive'], 'timeout=9');
  });

  test('an answer that is not HTTP is reported as such', async () => {
    server.on(THINGS, (request) => void request.socket.end('what?\r\n\r\n'));
    const { status, text } = await ask(THINGS);
    const want = /^error trying to reach service: net\/http: HTTP\/1.x transport connection broken/;
    assert.equal(status, 503);
    assert.match(text, want);
  });

  test('a redirect is neither followed nor forwarded', async () => {
    server.on(THINGS, (_, response) => void response.writeHead(302, { location: 'https://127.0.0.1:1/' }).end());
    const { status, text } = await ask(THINGS);
    const want = 'the backend attempted to redirect this request, which is not permitted\n';
    assert.deepEqual([status, text], [502, want]);
  });

  test('reads share kept connections, and a connection that was closed meanwhile is no error', async () => {
    server.on(THINGS, (_, response) => sendJson(response, {}));
    await ask(THINGS);
    const { connections } = server;
    for (let i = 0; i < 3; i++) assert.equal((await ask(THINGS)).status, 200);
    assert.equal(server.connections, connections);
    server.dropIdle();
    assert.equal((await ask(THINGS)).status, 200);
  });

  const UPGRADE = [
    'Host: x',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: plain.kubevirt.io',
    'X-Remote-User: root',
  ].join('\r\n');

  async function upgrade(t: Scope, path: string, after = ''): Promise<TLSSocket> {
    const socket = await openTls(front.admin, 'http/1.1');
    t.after(() => socket.destroy());
    socket.write(`GET ${path} HTTP/1.1\r\n${UPGRADE}\r\n\r\n${after}`);
    return socket;
  }

  /** Reads until the text has arrived. */
  async function until(socket: TLSSocket, text: string): Promise<string> {
    let read = '';
    while (!read.includes(text)) {
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      read += chunk.toString('latin1');
    }
    return read;
  }

  test('an upgraded connection is forwarded, including bytes sent before the answer', async (t) => {
    server.onUpgrade(`${THINGS}/a/console`, echo);
    const socket = await upgrade(t, `${THINGS}/a/console?x=1`, 'early ');
    const head = await until(socket, 'early ');
    assert.match(head, /^HTTP\/1.1 101 Switching Protocols\r\n/);
    assert.match(head, /Sec-WebSocket-Protocol: plain.kubevirt.io\r\n/);
    const [seen] = server.requests;
    assert.equal(seen?.url, `${THINGS}/a/console?x=1`);
    assert.equal(seen?.peer, 'front-proxy-client');
    assert.equal(seen?.headers['x-remote-user'], 'admin');
    const block = Buffer.alloc(1024 * 1024, 'y').toString();
    socket.write(`${block}end`);
    assert.equal((await until(socket, 'end')).length, block.length + 3);
    const closed = once(socket, 'close');
    socket.end();
    await closed;
  });

  test('an upgraded connection ends when the server closes it, after all of its data', async (t) => {
    server.onUpgrade(`${THINGS}/a/bye`, (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.end('last words');
    });
    assert.match(await untilClosed(await upgrade(t, `${THINGS}/a/bye`)), /last words$/);
  });

  test('a refused upgrade is an ordinary answer that closes the connection', async (t) => {
    server.onUpgrade(`${THINGS}/a/no`, (_, socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nnot today');
    });
    const text = await untilClosed(await upgrade(t, `${THINGS}/a/no`));
    assert.match(text, /^HTTP\/1.1 403 Forbidden\r\n/);
    assert.match(text, /\r\nConnection: close\r\n/i);
    assert.match(text, /not today$/);
  });

  test('an upgrade of a path that we serve ourselves gets an ordinary answer', async (t) => {
    const text = await untilClosed(await upgrade(t, '/version'));
    assert.match(text, /^HTTP\/1.1 200 OK\r\n/);
    const refused = await untilClosed(await upgrade(t, '/api/v1/namespaces/default/pods/none/log'));
    assert.match(refused, /pods \\"none\\" not found/);
  });

  test('a stop of the API server ends upgraded connections at once', async (t) => {
    const own = await startFrontServer(scope);
    own.services.register('golden', 'here', {
      api: () => ({
        status: 101,
        takeOver: (connection) => void connection.write('HTTP/1.1 101 Switching Protocols\r\n\r\nhello'),
      }),
    });
    const spec = { group: 'here.local', version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 };
    await own.create('/apis/apiregistration.k8s.io/v1/apiservices', {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1.here.local' },
      spec: { ...spec, service: { namespace: 'golden', name: 'here' } },
    });
    const socket = await openTls(own.admin, 'http/1.1');
    socket.write(`GET /apis/here.local/v1/things/a/console HTTP/1.1\r\n${UPGRADE}\r\n\r\n`);
    await until(socket, 'hello');
    const closed = once(socket, 'close');
    await own.stop();
    await closed;
    t.after(() => socket.destroy());
  });

  const broken: Record<string, { spec?: object; service?: object; want: [number, RegExp] }> = {
    'no such Service': { service: { name: 'none' }, want: [503, /^service unavailable\n$/] },
    'a port that the Service does not have': { service: { port: 1 }, want: [503, /^service unavailable\n$/] },
    'nothing listens on the port': {
      service: { name: 'dead', port: 1 },
      want: [503, /^error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused\n$/],
    },
    'a certificate of an unknown CA': {
      spec: { caBundle: '' },
      want: [503, /^error trying to reach service: tls: failed to verify certificate: x509: certificate signed by/],
    },
    'an invalid CA bundle': {
      spec: { caBundle: Buffer.from('nonsense').toString('base64') },
      want: [500, /^unable to load root certificates: unable to parse bytes as PEM block\n$/],
    },
    'a certificate for another service': {
      service: { name: 'other' },
      want: [503, /x509: certificate is valid for ext.golden.svc, not other.golden.svc\n$/],
    },
    'any certificate without verification': {
      spec: { caBundle: '', insecureSkipTLSVerify: true },
      want: [200, /^\{\}$/],
    },
  };
  let number = 0;
  before(async () => {
    for (const [name, port] of [
      ['dead', 1],
      ['other', server.port],
    ] as const) {
      const metadata = { name, namespace: 'golden' };
      const spec = { externalIPs: ['127.0.0.1'], ports: [{ port }] };
      await front.create('/api/v1/namespaces/golden/services', { apiVersion: 'v1', kind: 'Service', metadata, spec });
    }
  });
  for (const [name, { spec = {}, service = {}, want }] of Object.entries(broken)) {
    test(`an aggregated API that is misconfigured affects only itself: ${name}`, async () => {
      const group = `broken${++number}.local`;
      await register(`v1.${group}`, { caBundle: server.caBundle, ...spec }, service);
      server.on(`/apis/${group}/v1/things`, (_, response) => sendJson(response, {}));
      const { status, text } = await ask(`/apis/${group}/v1/things`);
      assert.equal(status, want[0], text);
      assert.match(text, want[1]);
    });
  }
});
