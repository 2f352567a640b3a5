import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { connect, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { RawConnection } from './raw-h2.ts';

type Serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

async function withConnection(serve: Serve, use: (connection: RawConnection) => Promise<void>): Promise<void> {
  const server = createServer();
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    serve(stream, headers);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const connection = new RawConnection(socket, 'bench.test', { accept: 'application/json', 'user-agent': 'bench' });
  try {
    await use(connection);
  } finally {
    connection.close();
    server.close();
  }
}

/** Header values that fill the server's table, so that statuses are evicted and inserted again. */
let filler = 0;
const respondWith =
  (status: number): Serve =>
  (stream) => {
    stream.respond({ ':status': status, 'x-filler': `${'f'.repeat(200)}${filler++}` });
    stream.end('ok');
  };

for (const status of [200, 201, 301, 404, 409, 422, 429, 500, 503]) {
  test(`reads status ${status}, also if the server refers to its table`, async () => {
    await withConnection(respondWith(status), async (connection) => {
      for (let turn = 0; turn < 40; turn++) assert.equal((await connection.exchange('GET', '/')).status, status);
    });
  });
}

test('sends path, fields and body unchanged, on the first request and on later ones', async () => {
  const echo: Serve = (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      stream.respond({ ':status': 200 });
      const { accept } = headers;
      const [method, path, length] = [headers[':method'], headers[':path'], headers['content-length']];
      const agent = headers['user-agent'];
      const authority = headers[':authority'];
      stream.end(
        JSON.stringify({ method, path, authority, accept, agent, length, body: Buffer.concat(chunks).toString() }),
      );
    });
  };
  await withConnection(echo, async (connection) => {
    const path = `/apis/${'p'.repeat(300)}?a=b`;
    for (let turn = 0; turn < 3; turn++) {
      const { body } = await connection.exchange('PATCH', path, Buffer.from(`turn ${turn}`));
      const common = { authority: 'bench.test', accept: 'application/json', agent: 'bench' };
      assert.deepEqual(JSON.parse(body.toString()), {
        method: 'PATCH',
        path,
        ...common,
        length: '6',
        body: `turn ${turn}`,
      });
    }
  });
});

test('receives more than the default windows', async () => {
  const large = Buffer.alloc(3_000_000, 'x');
  const serve: Serve = (stream) => {
    stream.respond({ ':status': 200 });
    stream.end(large);
  };
  await withConnection(serve, async (connection) => {
    const responses = await Promise.all([connection.exchange('GET', '/a'), connection.exchange('GET', '/b')]);
    for (const { body } of responses) assert.ok(body.equals(large));
  });
});

test('reports a reset stream and a lost connection as status 0', async () => {
  const serve: Serve = (stream, headers) => {
    if (headers[':path'] === '/reset') stream.close(2);
    else stream.session?.destroy();
  };
  await withConnection(serve, async (connection) => {
    assert.equal((await connection.exchange('GET', '/reset')).status, 0);
    assert.equal((await connection.exchange('GET', '/lost')).status, 0);
    assert.equal((await connection.exchange('GET', '/after')).status, 0);
  });
});
