/**
 * Parses discovery documents of aggregated API servers, in either form, to the resources of one group and version.
 * Invalid resources are omitted, so that a broken server affects only its own. Pure.
 */
import type { ApiResourceDiscovery } from '#engine/discovery/discovered-version.ts';
import { isRecord } from '#kube/meta.ts';

const MAX_RESOURCES = 2000;

/** Accept header for aggregated discovery, newest version first. */
export const AGGREGATED_ACCEPT = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(',');

export const isAggregated = (contentType: string) => contentType.includes('as=APIGroupDiscoveryList');

/** Returns undefined if the document does not contain this version. */
export function resourcesOfAggregated(
  document: unknown,
  group: string,
  version: string,
): ApiResourceDiscovery[] | undefined {
  for (const item of recordsIn(document, 'items')) {
    const { metadata } = item;
    if (!isRecord(metadata) || (text(metadata['name']) ?? '') !== group) continue;
    const found = recordsIn(item, 'versions').find((candidate) => candidate['version'] === version);
    if (found !== undefined) return recordsIn(found, 'resources').flatMap(aggregatedResource);
  }
  return undefined;
}

function aggregatedResource(value: Loose): ApiResourceDiscovery[] {
  const resource = text(value['resource']);
  if (resource === undefined) return [];
  const subresources = recordsIn(value, 'subresources').flatMap((sub) => {
    const subresource = text(sub['subresource']);
    if (subresource === undefined) return [];
    return [{ subresource, responseKind: kindIn(sub['responseKind']), verbs: textsIn(sub, 'verbs') }];
  });
  return [
    {
      resource,
      responseKind: kindIn(value['responseKind']),
      scope: value['scope'] === 'Namespaced' ? 'Namespaced' : 'Cluster',
      singularResource: text(value['singularResource']) ?? '',
      verbs: textsIn(value, 'verbs'),
      ...optional('shortNames', textsIn(value, 'shortNames')),
      ...optional('categories', textsIn(value, 'categories')),
      ...(subresources.length === 0 ? {} : { subresources }),
    },
  ];
}

/** Parses an APIResourceList. Throws if it is not one. */
export function resourcesOfPlain(document: unknown): ApiResourceDiscovery[] {
  if (!isRecord(document) || document['kind'] !== 'APIResourceList')
    throw new Error('the response is not an APIResourceList');
  const entries = recordsIn(document, 'resources');
  const found = new Map<string, ApiResourceDiscovery>();
  for (const entry of entries) {
    const resource = text(entry['name']);
    if (resource === undefined || resource.includes('/')) continue;
    found.set(resource, {
      resource,
      responseKind: kindIn(entry),
      scope: scopeIn(entry),
      singularResource: text(entry['singularName']) ?? '',
      verbs: textsIn(entry, 'verbs'),
      ...optional('shortNames', textsIn(entry, 'shortNames')),
      ...optional('categories', textsIn(entry, 'categories')),
    });
  }
  for (const entry of entries) addSubresource(found, entry);
  return [...found.values()];
}

function addSubresource(found: Map<string, ApiResourceDiscovery>, entry: Loose): void {
  const [resource = '', subresource = ''] = (text(entry['name']) ?? '').split(/\/(.*)/s, 2);
  if (subresource === '') return;
  // Some APIs have only subresources of kinds that other servers serve.
  const parent = found.get(resource) ?? {
    resource,
    responseKind: kindIn(undefined),
    scope: scopeIn(entry),
    singularResource: '',
    verbs: [],
  };
  const own = { subresource, responseKind: kindIn(entry), verbs: textsIn(entry, 'verbs') };
  found.set(resource, { ...parent, subresources: [...(parent.subresources ?? []), own] });
}

type Loose = Readonly<Record<string, unknown>>;

function recordsIn(holder: unknown, field: string): Loose[] {
  const value = isRecord(holder) ? holder[field] : undefined;
  return Array.isArray(value) ? value.slice(0, MAX_RESOURCES).filter(isRecord) : [];
}

function textsIn(holder: Loose, field: string): string[] {
  const value = holder[field];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
const scopeIn = (entry: Loose) => (entry['namespaced'] === true ? 'Namespaced' : 'Cluster');

/** Clients of 1.26 fail if it is missing. */
function kindIn(value: unknown): ApiResourceDiscovery['responseKind'] {
  const { group, version, kind } = isRecord(value) ? value : {};
  return { group: text(group) ?? '', version: text(version) ?? '', kind: text(kind) ?? '' };
}

function optional<K extends string>(name: K, values: string[]): { [name in K]?: string[] } {
  return (values.length === 0 ? {} : { [name]: values }) as { [name in K]?: string[] };
}
