/** Whom an aggregated API believes when a request says for whom it comes: what the API server has written down. */
import type { Client } from '#client/client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';

const NAME = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

export interface FrontProxy {
  /** PEM of whoever issued its certificate. */
  readonly ca: string;
  /** Common names that it may have; none = any. */
  readonly names: readonly string[];
  /** Headers, lower case. */
  readonly userHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
}

/** Throws where aggregation is not set up: then nobody can be believed. */
export async function readFrontProxy(client: Pick<Client, 'get'>): Promise<FrontProxy> {
  const { data = {} } = await client.get(CONFIG_MAPS, NAME);
  const ca = data['requestheader-client-ca-file'] ?? '';
  if (ca === '') {
    const what = 'ConfigMap kube-system/extension-apiserver-authentication has no requestheader-client-ca-file';
    throw new Error(`Cannot serve an aggregated API: ${what}; the API server needs its --requestheader-... flags`);
  }
  const list = (key: string, otherwise: readonly string[]) => namesIn(data[key]) ?? otherwise;
  const lower = (names: readonly string[]) => names.map((name) => name.toLowerCase());
  return {
    ca,
    names: list('requestheader-allowed-names', []),
    userHeaders: lower(list('requestheader-username-headers', ['X-Remote-User'])),
    groupHeaders: lower(list('requestheader-group-headers', ['X-Remote-Group'])),
  };
}

function namesIn(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : undefined;
}
