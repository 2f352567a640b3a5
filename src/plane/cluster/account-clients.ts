/**
 * Clients under our own accounts on a cluster: each with a token that is asked for when it is needed, and renewed before it
 * ends. Who asks for them may do little else (operator/objects/cluster.ts).
 */
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createHttpTransport, type HttpTransport } from '#client/http.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';

interface TokenRequest extends KubeObject {
  spec: { expirationSeconds: number };
  status?: { token?: string; expirationTimestamp?: string };
}

const TOKENS: ResourceType<TokenRequest> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

const LIFETIME_SECONDS = 3600;
const RENEW_AT = 0.7;

export interface Token {
  readonly token: string;
  readonly endsAtMs: number;
}

/** A token of an account in our namespace. */
export async function requestToken(
  client: Pick<Client, 'create'>,
  account: string,
  { seconds, clock }: { readonly seconds: number; readonly clock: Clock },
): Promise<Token> {
  const request: TokenRequest = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: account, namespace: SYSTEM_NAMESPACE },
    spec: { expirationSeconds: seconds },
  };
  const { status } = await client.create(TOKENS, request, { subresource: 'token' });
  if (!status?.token) throw new Error(`Cannot act as ${account}: the API server gave no token`);
  const endsAtMs = Date.parse(status.expirationTimestamp ?? '');
  return { token: status.token, endsAtMs: Number.isNaN(endsAtMs) ? clock.now() + seconds * 1000 : endsAtMs };
}

export interface AccountClients {
  of(account: string): Client;
  close(): void;
}

export interface AccountClientsOptions {
  /** Where the API is; how to prove who one is does not count. */
  readonly access: ClusterAccess;
  /** May ask for tokens. */
  readonly client: Pick<Client, 'create'>;
  readonly clock: Clock;
}

export function createAccountClients({ access, client, clock }: AccountClientsOptions): AccountClients {
  const { server, namespace, certificateAuthority, serverName, insecureSkipTlsVerify } = access;
  const place = { server, namespace, insecureSkipTlsVerify };
  const known = new Map<string, { readonly client: Client; readonly transport: HttpTransport }>();
  return {
    of(account) {
      const present = known.get(account);
      if (present !== undefined) return present.client;
      const tokens = tokensOf(account, client, clock);
      const bearing: ClusterAccess = {
        ...place,
        ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
        ...(serverName === undefined ? {} : { serverName }),
        // Read again now and then, as a file would be.
        tokenFile: account,
      };
      const transport = createHttpTransport(bearing, { userAgent: account, clock, readFile: tokens });
      const made = createClient(transport);
      known.set(account, { client: made, transport });
      return made;
    },
    close() {
      for (const { transport } of known.values()) transport.close();
    },
  };
}

/** Callers that come while one is asked for share it. */
function tokensOf(account: string, client: Pick<Client, 'create'>, clock: Clock): () => Promise<string> {
  let known: { readonly token: string; readonly renewAtMs: number } | undefined;
  let asking: Promise<string> | undefined;
  const ask = async (): Promise<string> => {
    const { token, endsAtMs } = await requestToken(client, account, { seconds: LIFETIME_SECONDS, clock });
    known = { token, renewAtMs: clock.now() + (endsAtMs - clock.now()) * RENEW_AT };
    return token;
  };
  return async () => {
    if (known !== undefined && clock.now() < known.renewAtMs) return known.token;
    asking ??= ask().finally(() => (asking = undefined));
    return await asking;
  };
}
