/** HTTPS requests without our client: status, headers and bytes as they arrive over HTTP/1.1 or HTTP/2. */
import { request as httpsRequest, type Agent, type RequestOptions } from 'node:https';
import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
} from 'node:http2';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import type { Scope } from '#test/support/server-process.ts';

export interface RawResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Returns the access without the user's credentials: only the server and its CA remain. */
export function withoutCredentials({ server, namespace, certificateAuthority }: ClusterAccess): ClusterAccess {
  return { server, namespace, certificateAuthority, insecureSkipTlsVerify: false };
}

function tlsOptions({ certificateAuthority: ca, clientCertificate: cert, clientKey: key }: ClusterAccess) {
  return { ca, cert, key };
}

function headersOf(access: ClusterAccess, headers: RawRequest['headers']): Record<string, string> {
  return { ...(access.token === undefined ? {} : { authorization: `Bearer ${access.token}` }), ...headers };
}

/** Opens one HTTP/2 connection, which is closed at the end of the test. */
export function openHttp2Session(t: Scope, access: ClusterAccess): ClientHttp2Session {
  const session = connectHttp2(access.server, {
    ...tlsOptions(access),
    settings: { enablePush: false },
    maxSessionMemory: 64,
  });
  session.on('error', () => {});
  t.after(() => session.destroy());
  return session;
}

export function sendHttp2Request(
  session: ClientHttp2Session,
  access: ClusterAccess,
  request: RawRequest,
): Promise<RawResponse> {
  const { method = 'GET', path, body } = request;
  const stream = session.request(
    { ':method': method, ':path': path, ...headersOf(access, request.headers) },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  return readHttp2Response(stream);
}

/** Rejects if the stream is reset before its end. */
export function readHttp2Response(stream: ClientHttp2Stream): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders | undefined;
    const chunks: Buffer[] = [];
    stream.on('response', (received) => (headers = received));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      if (headers === undefined) return;
      const status = Number((headers as Record<string, unknown>)[':status']);
      resolve({ status, headers, text: Buffer.concat(chunks).toString('utf8') });
    });
    stream.on('error', reject);
    stream.on('close', () => reject(new Error(`the stream was closed with code ${stream.rstCode}`)));
  });
}

/** Sends one HTTP/1.1 request. An `agent` can reuse the connection. A body without Content-Length is sent in chunks. */
export function sendHttp1Request(
  access: ClusterAccess,
  request: RawRequest & { readonly agent?: Agent },
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', path, body, agent = false } = request;
    const { hostname, port } = new URL(access.server);
    const headers = headersOf(access, request.headers);
    const options: RequestOptions = { host: hostname, port, method, path, headers, agent, ...tlsOptions(access) };
    const outgoing = httpsRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        if (response.complete) resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        else reject(new Error('the response is incomplete'));
      });
    });
    outgoing.on('error', reject);
    if (body !== undefined) outgoing.write(body);
    outgoing.end();
  });
}
