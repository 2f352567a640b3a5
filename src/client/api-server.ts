/** The address of an API server and the identity for it, as a kubeconfig describes them. */
import type { ClientCredential } from '#client/credentials/credential-source.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { serverOfUrl, type HttpsServer } from '#lib/https/https-server.ts';
import type { ClientIdentity } from '#lib/https/client-identity.ts';

interface ApiServer {
  readonly server: HttpsServer;
  /** The path before that of every request; '' if there is none. */
  readonly prefix: string;
}

export function apiServerOf({ server, serverName }: ClusterAccess): ApiServer {
  const url = new URL(server);
  return { server: { ...serverOfUrl(url), serverName }, prefix: url.pathname.replace(/\/+$/, '') };
}

/** Returns the identity. The certificate of the kubeconfig takes precedence over that of the credential. */
export function clientIdentityOf(
  access: ClusterAccess,
  credential: Pick<ClientCredential, 'clientCertificate' | 'clientKey'> = {},
): ClientIdentity {
  const { certificateAuthority: ca, insecureSkipTlsVerify: insecure } = access;
  const { clientCertificate: cert, clientKey: key } = access.clientCertificate === undefined ? credential : access;
  return { ca, cert, key, insecure };
}
