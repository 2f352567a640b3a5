/** Credentials that change while a transport is used, over real TLS. */
import assert from 'node:assert/strict';
import type { TLSSocket } from 'node:tls';
import { test, type TestContext } from 'node:test';
import type { ClientCredential, CredentialSource } from '#client/credentials/credential-source.ts';
import { createHttpTransport, type HttpTransport } from '#client/http.ts';
import { TEST_CA, TEST_CLIENT_CERTIFICATE, TEST_CLIENT_KEY } from '#client/testing/test-certificates.ts';
import { startHttp2Server } from '#client/testing/tls-server.ts';
import { systemClock } from '#lib/clock.ts';

const CERTIFICATE: ClientCredential = { clientCertificate: TEST_CLIENT_CERTIFICATE, clientKey: TEST_CLIENT_KEY };

/** Returns the first credential until it is discarded, then the next one. The last one is returned forever. */
class ListedCredentials implements CredentialSource {
  readonly #credentials: ClientCredential[];
  discarded = 0;

  constructor(...credentials: ClientCredential[]) {
    this.#credentials = credentials;
  }

  async current(): Promise<ClientCredential> {
    return this.#credentials[0]!;
  }

  discard(refused: ClientCredential): void {
    if (this.#credentials[0] !== refused) return;
    this.discarded++;
    if (this.#credentials.length > 1) this.#credentials.shift();
  }
}

/** Starts a server that accepts the token `good` or any client certificate, and records every request. */
async function open(t: TestContext, credentials: CredentialSource) {
  const requests: string[] = [];
  const server = await startHttp2Server((request, response) => {
    const name = (request.socket as TLSSocket).getPeerCertificate?.()?.subject?.CN;
    const { authorization } = request.headers;
    requests.push(`${request.method} ${authorization ?? '-'} ${String(name ?? '-')}`);
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      response.writeHead(authorization === 'Bearer good' || name !== undefined ? 200 : 401);
      response.end(body === '' ? '{}\n' : body);
    });
  });
  const transport: HttpTransport = createHttpTransport(
    {
      server: `https://127.0.0.1:${server.port}`,
      namespace: 'default',
      insecureSkipTlsVerify: false,
      certificateAuthority: TEST_CA,
      credentials,
    },
    { userAgent: 'test', clock: systemClock },
  );
  t.after(async () => {
    transport.close();
    await server.stop();
  });
  return { requests, transport };
}

test('repeats a refused request once with another token, including its body', async (t) => {
  const { requests, transport } = await open(t, new ListedCredentials({ token: 'old' }, { token: 'good' }));
  const { body } = await transport.request({ method: 'POST', path: '/x', body: { a: 1 } });
  assert.deepEqual(body, { a: 1 });
  assert.deepEqual(requests, ['POST Bearer old -', 'POST Bearer good -']);
});

test('repeats a refused stream', async (t) => {
  const { requests, transport } = await open(t, new ListedCredentials({ token: 'old' }, { token: 'good' }));
  const lines = await Array.fromAsync(transport.stream({ method: 'GET', path: '/x' }));
  assert.deepEqual(lines, [{}]);
  assert.equal(requests.length, 2);
});

test('does not repeat a request a second time', async (t) => {
  const source = new ListedCredentials({ token: 'a' }, { token: 'b' }, { token: 'good' });
  const { requests, transport } = await open(t, source);
  await assert.rejects(transport.request({ method: 'GET', path: '/x' }), { name: 'ApiError', code: 401 });
  assert.deepEqual(requests, ['GET Bearer a -', 'GET Bearer b -']);
});

test('does not repeat a request with the same token', async (t) => {
  const source = new ListedCredentials({ token: 'old' });
  const { requests, transport } = await open(t, source);
  await assert.rejects(transport.request({ method: 'GET', path: '/x' }), { name: 'ApiError', code: 401 });
  assert.deepEqual([requests.length, source.discarded], [1, 1]);
});

test('connects again when the certificate changes', async (t) => {
  const { requests, transport } = await open(t, new ListedCredentials({ token: 'old' }, CERTIFICATE));
  await transport.request({ method: 'GET', path: '/x' });
  await transport.request({ method: 'GET', path: '/y' });
  assert.deepEqual(requests, ['GET Bearer old -', 'GET - selfsame-tester', 'GET - selfsame-tester']);
});

test('closing the transport ends the wait for a credential', async (t) => {
  const signals: AbortSignal[] = [];
  const source: CredentialSource = {
    current: ({ signal } = {}) =>
      new Promise((_, reject) => {
        signals.push(signal!);
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      }),
    discard() {},
  };
  const { transport } = await open(t, source);
  const calls = [undefined, new AbortController().signal].map((signal) =>
    assert.rejects(
      transport.request({ method: 'GET', path: '/x', ...(signal && { signal }) }),
      /Cannot GET \/x: the client is closed/,
    ),
  );
  transport.close();
  await Promise.all(calls);
  assert.equal(signals.length, 2);
});
