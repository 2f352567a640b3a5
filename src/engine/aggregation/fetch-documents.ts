/**
 * Fetches the documents of a service about its group and version: discovery, which is required, and OpenAPI, which is
 * optional.
 */
import type { RemoteVersion } from '#engine/aggregation/aggregation.ts';
import { fetchFromService, type ServiceResponse, type FetchOptions } from '#engine/aggregation/fetch-from-service.ts';
import {
  AGGREGATED_ACCEPT,
  isAggregated,
  resourcesOfAggregated,
  resourcesOfPlain,
} from '#engine/aggregation/parse-discovery.ts';
import { discoveryPath, type RemoteApi } from '#engine/aggregation/remote-api.ts';
import type { RemoteService } from '#engine/aggregation/remote-service.ts';
import { parseJson } from '#engine/encoding/json.ts';
import { takeRemoteV2 } from '#engine/openapi/remote-v2.ts';
import { isRecord } from '#kube/meta.ts';

export type RemoteDocuments = Pick<RemoteVersion, 'resources' | 'openApiV3Hash' | 'openApiV2'>;

type Fetch = (path: string, accept?: string) => Promise<ServiceResponse>;

/** Rejects if there is no discovery document. */
export async function fetchDocuments(
  api: RemoteApi,
  service: RemoteService,
  options: FetchOptions,
): Promise<RemoteDocuments> {
  const fetch: Fetch = (path, accept) =>
    fetchFromService((request) => service.send(request), path, {
      ...options,
      ...(accept === undefined ? {} : { accept }),
    });
  const resources = await fetchResources(api, fetch);
  const [openApiV3Hash, openApiV2] = await Promise.all([
    orUndefined(fetchV3Hash(api, fetch)),
    orUndefined(fetchV2(api, fetch)),
  ]);
  return { resources, openApiV3Hash, openApiV2 };
}

async function fetchResources(api: RemoteApi, fetch: Fetch): Promise<RemoteVersion['resources']> {
  const { group, version } = api;
  const all = await fetch('/apis', AGGREGATED_ACCEPT);
  if (all.status === 200 && isAggregated(all.contentType)) {
    const found = resourcesOfAggregated(jsonOf(all), group, version);
    if (found !== undefined) return found;
  }
  const path = discoveryPath(api);
  const one = await fetch(path);
  if (one.status !== 200) throw new Error(`failed to download discovery for ${path}: HTTP ${one.status}`);
  return resourcesOfPlain(jsonOf(one));
}

const HASH = /[?&]hash=([0-9A-Za-z_-]{1,128})(?:&|$)/;

async function fetchV3Hash(api: RemoteApi, fetch: Fetch): Promise<string | undefined> {
  const index = jsonOf(await requireOk(fetch('/openapi/v3')));
  const paths = isRecord(index) && isRecord(index['paths']) ? index['paths'] : {};
  const path = discoveryPath(api).slice(1);
  const entry = Object.hasOwn(paths, path) ? paths[path] : undefined;
  const url = isRecord(entry) ? entry['serverRelativeURL'] : undefined;
  return typeof url === 'string' ? HASH.exec(url)?.[1] : undefined;
}

async function fetchV2(api: RemoteApi, fetch: Fetch): Promise<RemoteVersion['openApiV2']> {
  return takeRemoteV2(jsonOf(await requireOk(fetch('/openapi/v2'))), discoveryPath(api));
}

async function requireOk(pending: Promise<ServiceResponse>): Promise<ServiceResponse> {
  const response = await pending;
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
  return response;
}

const jsonOf = ({ body }: ServiceResponse) => parseJson(body.toString('utf8'));
const orUndefined = <T>(work: Promise<T>): Promise<T | undefined> => work.catch(() => undefined);
