/** Reads the front proxy whose user headers an aggregated API trusts, as the API server publishes it. */
import type { Client } from '#client/client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';

const NAME = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

export interface FrontProxy {
  /** PEM of the authority that issued its certificate. */
  readonly ca: string;
  /** Allowed common names; empty = any. */
  readonly names: readonly string[];
  /** Names of headers, in lower case. */
  readonly userHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
}

/** Throws if aggregation is not configured, because no user could be authenticated. */
export async function readFrontProxy(client: Pick<Client, 'get'>): Promise<FrontProxy> {
  const { data = {} } = await client.get(CONFIG_MAPS, NAME);
  const ca = data['requestheader-client-ca-file'] ?? '';
  if (ca === '') {
    const state = 'ConfigMap kube-system/extension-apiserver-authentication has no requestheader-client-ca-file';
    throw new Error(`Cannot serve an aggregated API: ${state}; set the --requestheader-... flags of the API server`);
  }
  const list = (key: string, otherwise: readonly string[]) => parseNames(data[key]) ?? otherwise;
  const lower = (names: readonly string[]) => names.map((name) => name.toLowerCase());
  return {
    ca,
    names: list('requestheader-allowed-names', []),
    userHeaders: lower(list('requestheader-username-headers', ['X-Remote-User'])),
    groupHeaders: lower(list('requestheader-group-headers', ['X-Remote-Group'])),
  };
}

function parseNames(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : undefined;
}
