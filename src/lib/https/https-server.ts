/** The address of a server. */
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';

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

export interface ServerNameOptions {
  /** The name that is sent; '' for none. */
  readonly servername: string;
  checkServerIdentity?(name: string, certificate: PeerCertificate): Error | undefined;
}

/** Returns the TLS options for the name of a server. An IP address is not sent, but the certificate is checked for it. */
export function serverNameOptions({ host, serverName = host }: HttpsServer): ServerNameOptions {
  if (isIP(serverName) === 0) return { servername: serverName };
  if (serverName === host) return { servername: '' };
  // Node.js would check the certificate for the host. It keeps no connection alive that has its own check.
  return {
    servername: '',
    checkServerIdentity: (_, certificate) => checkServerIdentity(serverName, certificate),
  };
}

export function joinHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
