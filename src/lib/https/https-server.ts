/** The address of a server. */
import { isIP } from 'node:net';

export interface HttpsServer {
  readonly host: string;
  readonly port: number;
  /** The name that the certificate must be valid for; the host by default. */
  readonly serverName?: string | undefined;
}

const DEFAULT_PORT = 443;

export function serverOfUrl({ hostname, port }: URL): HttpsServer {
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? DEFAULT_PORT : Number(port) };
}

/** Returns the server name for TLS. It must not be an IP address; the certificate is then checked for the address. */
export function tlsServerName({ host, serverName = host }: HttpsServer): string {
  return isIP(serverName) === 0 ? serverName : '';
}

export function joinHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
