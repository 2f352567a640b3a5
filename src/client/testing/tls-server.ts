/** Real TLS servers on this machine, and a proxy that can cut connections or drop all data. */
import { createSecureServer } from 'node:http2';
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { TEST_CA, TEST_SERVER_CERTIFICATE, TEST_SERVER_KEY } from '#client/testing/test-certificates.ts';

export type TestHandler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

const TLS = {
  key: TEST_SERVER_KEY,
  cert: TEST_SERVER_CERTIFICATE,
  ca: TEST_CA,
  requestCert: true,
  rejectUnauthorized: false,
};

export interface TestServer {
  readonly port: number;
  readonly sessions: Set<ServerHttp2Session>;
  /** The number of connections since the start. */
  connections(): number;
  stop(): Promise<void>;
}

export async function startHttp2Server(
  handler: TestHandler,
  { port = 0, maxConcurrentStreams = 100 }: { port?: number; maxConcurrentStreams?: number } = {},
): Promise<TestServer> {
  const server = createSecureServer({ ...TLS, settings: { maxConcurrentStreams } }, handler);
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => {});
    session.on('close', () => sessions.delete(session));
  });
  return await listen(server, port, sessions);
}

/** A server without HTTP/2. */
export async function startHttp1Server(handler: TestHandler, { port = 0 } = {}): Promise<TestServer> {
  const server = createHttpsServer(TLS, handler as never);
  return await listen(server as unknown as Http2SecureServer, port, new Set());
}

async function listen(server: Http2SecureServer, port: number, sessions: Set<ServerHttp2Session>): Promise<TestServer> {
  let connections = 0;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    connections: () => connections,
    stop: () =>
      new Promise((resolve) => {
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

/** Forwards bytes to a port. */
export class TestProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #targetPort: number;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
  }

  static async start(targetPort: number): Promise<TestProxy> {
    const server = createServer();
    const proxy = new TestProxy(server, targetPort);
    server.on('connection', (near) => proxy.#connect(near));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  retarget(port: number): void {
    this.#targetPort = port;
  }

  /** Sends a TCP reset on every connection. */
  reset(): void {
    for (const [near, far] of this.#pairs) {
      near.resetAndDestroy();
      far.destroy();
    }
  }

  /** Keeps connections open but drops all data. */
  dropData(): void {
    for (const [near, far] of this.#pairs) {
      near.unpipe(far);
      far.unpipe(near);
      near.resume();
      far.resume();
    }
  }

  async stop(): Promise<void> {
    this.reset();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #connect(near: Socket): void {
    const far = connect(this.#targetPort, '127.0.0.1');
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  }
}
