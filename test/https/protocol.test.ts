/** HTTP as a client sees it: both protocols, kept connections, chunked bodies, limits, headers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { after, before, suite, test } from 'node:test';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { openTls } from '#test/https/raw-tls.ts';
import {
  sendHttp1Request,
  readHttp2Response,
  sendHttp2Request,
  openHttp2Session,
  type RawResponse,
  type RawRequest,
} from '#test/support/raw-https.ts';
import { startServer, createTemporaryDir, type Scope } from '#test/support/server-process.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const MAX_BODY_BYTES = 3_145_728;
const JSON_TYPE = { 'content-type': 'application/json' };

const aConfigMap = (name: string, data: Record<string, string> = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

suite('HTTP', () => {
  let access: ClusterAccess;
  const cleanups: (() => void)[] = [];
  const scope: Scope = { after: (fn) => cleanups.push(fn) };
  after(() => cleanups.forEach((cleanup) => cleanup()));
  before(async () => {
    access = (await startServer(scope, { dataDir: createTemporaryDir(scope) })).access();
  });

  /** Senders for each protocol that use one connection. */
  const protocols: Record<string, (t: Scope) => (request: RawRequest) => Promise<RawResponse>> = {
    'HTTP/1.1': (t) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      t.after(() => agent.destroy());
      return (request) => sendHttp1Request(access, { ...request, agent });
    },
    'HTTP/2': (t) => {
      const session = openHttp2Session(t, access);
      return (request) => sendHttp2Request(session, access, request);
    },
  };

  for (const [protocol, open] of Object.entries(protocols)) {
    const id = protocol.replaceAll(/\W/g, '').toLowerCase();

    test(`${protocol}: an object is created, changed and deleted on one connection`, async (t) => {
      const send = open(t);
      const name = `life-${id}`;
      const item = `${CONFIG_MAPS}/${name}`;
      const patch = { 'content-type': 'application/merge-patch+json' };
      const steps: [RawRequest, number][] = [
        [{ path: item }, 404],
        [{ method: 'POST', path: CONFIG_MAPS, headers: JSON_TYPE, body: aConfigMap(name) }, 201],
        [{ method: 'POST', path: CONFIG_MAPS, headers: JSON_TYPE, body: aConfigMap(name) }, 409],
        [{ method: 'PUT', path: item, headers: JSON_TYPE, body: aConfigMap(name, { a: '1' }) }, 200],
        [{ method: 'PATCH', path: item, headers: patch, body: '{"data":{"b":"ü"}}' }, 200],
        [{ path: item }, 200],
        [{ method: 'FROB', path: item }, 405],
        [{ method: 'DELETE', path: item }, 200],
        [{ path: item }, 404],
      ];
      for (const [request, status] of steps) {
        // Unknown methods of HTTP/1.1 never reach the API.
        if (protocol === 'HTTP/1.1' && request.method === 'FROB') continue;
        const answer = await send(request);
        assert.equal(answer.status, status, `${request.method ?? 'GET'}: ${answer.text}`);
        assert.equal(answer.headers['content-type'], 'application/json');
        assert.equal(answer.headers['cache-control'], 'no-cache, private');
        assert.match(String(answer.headers['audit-id']), /^[0-9a-f-]{36}$/);
        if (request.path === item && status === 200 && request.method === undefined) {
          assert.deepEqual(JSON.parse(answer.text).data, { a: '1', b: 'ü' });
        }
      }
    });

    test(`${protocol}: a body over 3 MiB is refused, with and without its length, and the connection stays usable`, async (t) => {
      const send = open(t);
      for (const declared of [true, false]) {
        for (const size of [MAX_BODY_BYTES + 1, 3 * MAX_BODY_BYTES]) {
          const body = Buffer.alloc(size, 0x20);
          const headers = { ...JSON_TYPE, ...(declared ? { 'content-length': String(size) } : {}) };
          const { status, text } = await send({ method: 'POST', path: CONFIG_MAPS, headers, body });
          const { reason, message } = JSON.parse(text) as { reason: string; message: string };
          const want = {
            status: 413,
            reason: 'RequestEntityTooLarge',
            message: 'Request entity too large: limit is 3145728',
          };
          assert.deepEqual({ status, reason, message }, want);
          assert.equal((await send({ path: '/livez' })).text, 'ok');
        }
      }
      // Within the limit of the request, but too large for the store, and not an object.
      const body = Buffer.alloc(MAX_BODY_BYTES, 0x20);
      assert.equal((await send({ method: 'POST', path: CONFIG_MAPS, headers: JSON_TYPE, body })).status, 400);
    });

    test(`${protocol}: an unread body does not block the connection`, async (t) => {
      const send = open(t);
      const body = Buffer.alloc(2 * 1024 * 1024, 0x20);
      for (const [method, path, status] of [
        ['POST', '/no-such-path', 404],
        ['POST', '/version', 405],
        ['PUT', CONFIG_MAPS, 405],
      ] as const) {
        assert.equal((await send({ method, path, headers: JSON_TYPE, body })).status, status);
        assert.equal((await send({ path: '/livez' })).text, 'ok');
      }
    });

    test(`${protocol}: content types are negotiated`, async (t) => {
      const send = open(t);
      const create = (type: string, body: string) =>
        send({ method: 'POST', path: `${CONFIG_MAPS}?dryRun=All`, headers: { 'content-type': type }, body });
      const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}\n';
      assert.equal((await create('application/json; charset=utf-8', aConfigMap('typed'))).status, 201);
      assert.equal((await create('application/yaml', yaml)).status, 201);
      assert.equal((await create('text/plain', aConfigMap('typed'))).status, 415);
      const accepts: Record<string, [number, string]> = {
        'application/json': [200, 'application/json'],
        '*/*': [200, 'application/json'],
        'application/yaml': [200, 'application/yaml'],
        'application/vnd.kubernetes.protobuf, application/json': [200, 'application/json'],
        'text/html': [406, 'application/json'],
      };
      for (const [accept, [status, type]] of Object.entries(accepts)) {
        const answer = await send({ path: CONFIG_MAPS, headers: { accept } });
        assert.deepEqual([answer.status, answer.headers['content-type']], [status, type], accept);
      }
    });

    test(`${protocol}: discovery is not sent again to a client that has it`, async (t) => {
      const send = open(t);
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
      for (const path of ['/apis', '/api', '/openapi/v2', '/openapi/v3']) {
        const first = await send({ path, headers: { accept } });
        const etag = String(first.headers.etag);
        assert.equal(first.status, 200);
        assert.match(etag, /^"[0-9A-F]{64}"$/);
        assert.equal(first.headers.vary, 'Accept');
        const second = await send({ path, headers: { accept, 'if-none-match': etag } });
        assert.deepEqual([second.status, second.text, second.headers.etag], [304, '', etag]);
        const other = await send({ path, headers: { accept, 'if-none-match': '"0000"' } });
        assert.deepEqual([other.status, other.text], [200, first.text]);
      }
    });

    test(`${protocol}: warnings are sent as headers`, async (t) => {
      const send = open(t);
      const path = `${CONFIG_MAPS}?dryRun=All&fieldValidation=Warn`;
      const body = JSON.stringify({ ...JSON.parse(aConfigMap('warned')), 'od"d\\ü': 1 });
      const { status, headers } = await send({ method: 'POST', path, headers: JSON_TYPE, body });
      assert.equal(status, 201);
      // As in kube-apiserver: code, no agent, and the quoted text with escaped quotes and backslashes.
      assert.match(String(headers['warning']), /^299 - "unknown field (?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+"$/);
    });

    test(`${protocol}: HEAD is a GET without a body`, async (t) => {
      const send = open(t);
      const { status, text } = await send({ method: 'HEAD', path: '/api/v1/namespaces/default' });
      assert.deepEqual([status, text], [200, '']);
      assert.equal((await send({ path: '/livez' })).text, 'ok');
    });
  }

  test('HTTP/1.1: several requests use one connection', async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const ports = new Set<number | undefined>();
    agent.on('free', (socket) => ports.add(socket.localPort));
    for (let i = 0; i < 5; i++) {
      const path = i % 2 === 0 ? '/version' : '/no-such-path';
      assert.equal((await sendHttp1Request(access, { path, agent })).status, i % 2 === 0 ? 200 : 404);
    }
    assert.equal(ports.size, 1);
  });

  test('HTTP/1.1: pipelined requests are answered in order', async (t) => {
    const socket = await openTls(access, 'http/1.1');
    t.after(() => socket.destroy());
    const body = aConfigMap('piped');
    const chunked = [...body].map((char) => `${Buffer.byteLength(char).toString(16)}\r\n${char}\r\n`).join('');
    const head = (line: string) => `${line} HTTP/1.1\r\nHost: localhost\r\n`;
    socket.write(
      `${head('GET /livez')}\r\n` +
        `${head(`POST ${CONFIG_MAPS}`)}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}0\r\n\r\n` +
        `${head('GET /no-such-path')}Connection: close\r\n\r\n`,
    );
    let received = '';
    socket.on('data', (chunk) => (received += String(chunk)));
    await once(socket, 'end');
    const lines = received.match(/HTTP\/1\.1 \d+/g);
    assert.deepEqual(lines, ['HTTP/1.1 200', 'HTTP/1.1 201', 'HTTP/1.1 404']);
  });

  test('HTTP/1.1: a connection stays usable when requests arrive in parts', async (t) => {
    const socket = await openTls(access, 'http/1.1');
    t.after(() => socket.destroy());
    let received = '';
    socket.on('data', (chunk) => (received += String(chunk)));
    const answers = () => received.match(/HTTP\/1\.1 \d+ /g) ?? [];
    const answered = async (count: number) => {
      while (answers().length < count) await once(socket, 'data');
    };
    const head = (line: string) => `${line} HTTP/1.1\r\nHost: localhost\r\n`;
    const body = aConfigMap('in-halves');
    // A body in two writes; the second one also has the next request.
    const half = body.length / 2;
    socket.write(
      `${head(`POST ${CONFIG_MAPS}`)}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, half)}`,
    );
    await new Promise((resolve) => setImmediate(resolve));
    socket.write(`${body.slice(half)}${head('GET /livez')}\r\n`);
    await answered(2);
    // Half of a request line.
    socket.write('GET /ver');
    await new Promise((resolve) => setImmediate(resolve));
    socket.write(`sion HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await answered(3);
    socket.write(`${head(`DELETE ${CONFIG_MAPS}/in-halves`)}\r\n`);
    await answered(4);
    assert.deepEqual(answers(), ['HTTP/1.1 201 ', 'HTTP/1.1 200 ', 'HTTP/1.1 200 ', 'HTTP/1.1 200 ']);
    assert.match(received, /"gitVersion"/);
  });

  test('HTTP/1.1: a client that does not read its answers is throttled, and gets them all when it reads', async (t) => {
    const socket = await openTls(access, 'http/1.1');
    t.after(() => socket.destroy());
    const count = 200;
    let [bytes, text] = [0, ''];
    socket.pause();
    socket.write('GET /openapi/v2 HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(count));
    socket.write('GET /no-such-path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    assert.equal((await sendHttp1Request(access, { path: '/livez' })).text, 'ok');
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      text = `${text}${chunk.toString('latin1')}`.slice(-500);
    });
    socket.resume();
    await once(socket, 'end');
    assert.match(text, /HTTP\/1\.1 404 Not Found\r\n/);
    assert.ok(bytes > count * 100_000, `${bytes} bytes came`);
  });

  test('HTTP/2: one refused body does not disturb the other streams of its connection', async (t) => {
    const session = openHttp2Session(t, access);
    const watch = session.request({
      ':path': `${CONFIG_MAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name=beside`,
    });
    await once(watch, 'response');
    let seen = '';
    const added = new Promise<void>((resolve) => {
      watch.on('data', (chunk) => {
        seen += String(chunk);
        if (seen.includes('\n')) resolve();
      });
    });
    const headers = { ':method': 'POST', ':path': CONFIG_MAPS, ...JSON_TYPE };
    const large = session.request(headers);
    const refused = readHttp2Response(large);
    large.write(Buffer.alloc(2 * MAX_BODY_BYTES, 0x20));
    const made = await sendHttp2Request(session, access, {
      method: 'POST',
      path: CONFIG_MAPS,
      headers: JSON_TYPE,
      body: aConfigMap('beside'),
    });
    assert.equal(made.status, 201);
    assert.equal((await refused).status, 413, 'the answer does not wait for the rest of the body');
    await added;
    assert.match(seen, /^{"type":"ADDED"/);
    assert.ok(!watch.closed && !session.closed);
  });
});
