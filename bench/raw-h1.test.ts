import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { RawConnection1 } from './raw-h1.ts';
import { exchange, type Connection } from './raw-h2.ts';

/** Connects to a server that sends these bytes one by one for every request. */
async function withConnection(bytes: string, use: (connection: Connection) => Promise<void>): Promise<void> {
  const server = createServer((socket: Socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', () => {
      for (const byte of Buffer.from(bytes, 'latin1')) socket.write(Buffer.of(byte));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const connection = new RawConnection1(socket, 'bench.test', { accept: 'application/json', 'user-agent': 'bench' });
  try {
    await use(connection);
  } finally {
    connection.close();
    server.close();
  }
}

const RESPONSES: Record<string, { bytes: string; status: number; body: string }> = {
  'a body of a known length': {
    bytes: 'HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello',
    status: 201,
    body: 'hello',
  },
  'no body': { bytes: 'HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n', status: 409, body: '' },
  'a body in chunks': {
    bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel\r\n\r\na\r\n0123456789\r\n0\r\n\r\n',
    status: 200,
    body: 'hel\r\n0123456789',
  },
};

for (const [what, { bytes, status, body }] of Object.entries(RESPONSES)) {
  test(`reads ${what} in any pieces, repeatedly`, async () => {
    await withConnection(bytes, async (connection) => {
      for (let turn = 0; turn < 3; turn++) {
        const response = await exchange(connection, 'GET', '/');
        assert.deepEqual({ status: response.status, body: response.body.toString() }, { status, body });
      }
    });
  });
}
