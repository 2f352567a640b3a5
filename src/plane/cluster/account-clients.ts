/**
 * Clients with our service accounts on a cluster. Each gets its token on first use and renews it before it expires. The
 * account that requests these tokens has few other rights (operator/objects/cluster.ts).
 */
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createHttpTransport, type HttpTransport } from '#client/http.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { requestServiceAccountToken } from '#client/token-request.ts';
import { createClient } from '#client/rest-client.ts';
import type { Clock } from '#lib/clock.ts';

const LIFETIME_SECONDS = 3600;
const RENEW_AT = 0.7;

interface AccountToken {
  readonly token: string;
  readonly expiresAtMs: number;
}

/** Requests a token of an account in our namespace. */
export async function requestToken(
  client: Pick<Client, 'create'>,
  account: string,
  { seconds, clock }: { readonly seconds: number; readonly clock: Clock },
): Promise<AccountToken> {
  const name = { namespace: SYSTEM_NAMESPACE, name: account };
  const { token, expiresAtMs } = await requestServiceAccountToken(client, name, { expirationSeconds: seconds });
  if (token === undefined) throw new Error(`Cannot act as ${account}: the API server returned no token`);
  return { token, expiresAtMs: expiresAtMs ?? clock.now() + seconds * 1000 };
}

interface AccountClients {
  of(account: string): Client;
  close(): void;
}

interface AccountClientsOptions {
  /** The API server; the credentials are not used. */
  readonly access: ClusterAccess;
  /** A client that may request tokens. */
  readonly client: Pick<Client, 'create'>;
  readonly clock: Clock;
}

export function createAccountClients({ access, client, clock }: AccountClientsOptions): AccountClients {
  const { server, namespace, certificateAuthority, serverName, insecureSkipTlsVerify } = access;
  const endpoint = { server, namespace, insecureSkipTlsVerify };
  const clients = new Map<string, { readonly client: Client; readonly transport: HttpTransport }>();
  return {
    of(account) {
      const present = clients.get(account);
      if (present !== undefined) return present.client;
      const tokens = createTokenSource(account, client, clock);
      const tokenAccess: ClusterAccess = {
        ...endpoint,
        ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
        ...(serverName === undefined ? {} : { serverName }),
        // Treated as a file, so that the transport reads it again from time to time.
        tokenFile: account,
      };
      const transport = createHttpTransport(tokenAccess, { userAgent: account, clock, readFile: tokens });
      const created = createClient(transport);
      clients.set(account, { client: created, transport });
      return created;
    },
    close() {
      for (const { transport } of clients.values()) transport.close();
    },
  };
}

/** Returns a function that provides a valid token. Callers during a request share its result. */
function createTokenSource(account: string, client: Pick<Client, 'create'>, clock: Clock): () => Promise<string> {
  let current: { readonly token: string; readonly renewAtMs: number } | undefined;
  let pending: Promise<string> | undefined;
  const request = async (): Promise<string> => {
    const { token, expiresAtMs } = await requestToken(client, account, { seconds: LIFETIME_SECONDS, clock });
    current = { token, renewAtMs: clock.now() + (expiresAtMs - clock.now()) * RENEW_AT };
    return token;
  };
  return async () => {
    if (current !== undefined && clock.now() < current.renewAtMs) return current.token;
    pending ??= request().finally(() => (pending = undefined));
    return await pending;
  };
}
