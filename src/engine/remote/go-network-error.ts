/**
 * Formats network errors like Go's net and crypto/tls: kube-apiserver shows these messages, and people search for them.
 */
import { isIP } from 'node:net';
import { HttpsTimeoutError, type HttpsPhase } from '#lib/https/https-error.ts';
import { joinHostPort } from '#lib/https/https-server.ts';

interface SystemError extends Error {
  readonly code?: string;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly cert?: { readonly subjectaltname?: string };
}

export interface DialTarget {
  readonly host: string;
  readonly port: number;
  /** The name that the certificate must be valid for. */
  readonly serverName: string;
}

const CONNECT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  EADDRNOTAVAIL: 'connect: cannot assign requested address',
  ETIMEDOUT: 'connect: connection timed out',
};

const CERTIFICATE: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'certificate has expired or is not yet valid',
  CERT_NOT_YET_VALID: 'certificate has expired or is not yet valid',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'certificate signed by unknown authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate signed by unknown authority',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate signed by unknown authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate signed by unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate signed by unknown authority',
  CERT_SIGNATURE_FAILURE: 'certificate signed by unknown authority',
};

/** Reports whether the connection failed, so that nothing was sent. */
export function isConnectFailure(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isConnectFailure);
  const { code = '', syscall } = error instanceof Error ? (error as SystemError) : {};
  return syscall === 'connect' && CONNECT[code] !== undefined;
}

/** Message for an authority or a client certificate that cannot be read. */
export const UNUSABLE_CERTIFICATES = 'unable to load root certificates: unable to parse bytes as PEM block';

/** Message for a response whose body is not complete in time. */
export const LATE_BODY = 'net/http: request canceled while reading body';

const LATE: Readonly<Record<HttpsPhase, (dialed: DialTarget) => string>> = {
  connect: ({ host, port }) => `dial tcp ${joinHostPort(host, port)}: i/o timeout`,
  headers: () => 'net/http: timeout awaiting response headers',
  body: () => LATE_BODY,
};

export function goNetworkError(error: unknown, dialed: DialTarget): string {
  // With several addresses Node tries all and reports all; the first error is used.
  if (error instanceof AggregateError && error.errors.length > 0) return goNetworkError(error.errors[0], dialed);
  if (!(error instanceof Error)) return String(error);
  if (error instanceof HttpsTimeoutError) return LATE[error.phase](dialed);
  if (error.name === 'AbortError') return 'context canceled';
  const { code = '', syscall, address, port, cert } = error as SystemError;
  const connect = CONNECT[code];
  if (connect !== undefined && syscall === 'connect') {
    return `dial tcp ${joinHostPort(address ?? dialed.host, port ?? dialed.port)}: ${connect}`;
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    const why = code === 'ENOTFOUND' ? 'no such host' : 'server misbehaving';
    return `dial tcp: lookup ${dialed.host}: ${why}`;
  }
  const certificate = CERTIFICATE[code];
  if (certificate !== undefined) return `tls: failed to verify certificate: x509: ${certificate}`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `tls: failed to verify certificate: x509: ${wrongName(cert?.subjectaltname ?? '', dialed.serverName)}`;
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) return 'tls: first record does not look like a TLS handshake';
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE') {
    return syscall === 'read' || syscall === 'write' ? `${syscall}: connection reset by peer` : 'EOF';
  }
  if (code.startsWith('HPE_')) return `net/http: HTTP/1.x transport connection broken: malformed HTTP response`;
  return error.message;
}

/** Formats Go's message for alternative names such as `DNS:a.b, IP Address:1.2.3.4`. */
function wrongName(alternatives: string, serverName: string): string {
  const isAddress = isIP(serverName) !== 0;
  const prefix = isAddress ? 'IP Address:' : 'DNS:';
  const names = alternatives
    .split(', ')
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length));
  if (names.length > 0) return `certificate is valid for ${names.join(', ')}, not ${serverName}`;
  if (isAddress) return `cannot validate certificate for ${serverName} because it doesn't contain any IP SANs`;
  return `certificate is not valid for any names, but wanted to match ${serverName}`;
}
