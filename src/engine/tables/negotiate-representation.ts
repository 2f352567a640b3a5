/**
 * Negotiates the representation of an object or list: itself, a Table, or its metadata only. Runs on each request; the
 * results are cached, because clients repeat their headers.
 */
import { accepts, parseAccept, type AcceptClause } from '#engine/request/accept-header.ts';

export type MetaVersion = 'v1' | 'v1beta1';

export interface Representation {
  /** `json` and `yaml` are the object itself. */
  readonly kind: 'json' | 'yaml' | 'table' | 'partial';
  /** The requested version of meta.k8s.io for Table and PartialObjectMetadata. */
  readonly version: MetaVersion;
  /** The encoding of a table or partial metadata; for the object itself the same as `kind`. */
  readonly encoding: 'json' | 'yaml';
  /** True if `partial` was requested as PartialObjectMetadataList, which only a list can satisfy. */
  readonly list: boolean;
  /** True if the header requests indented output. */
  readonly pretty: boolean;
}

/** The types listed in a 406. */
export const ACCEPTED_TYPES: readonly string[] = ['application/json', 'application/yaml'];

const PLAIN_JSON: Representation = { kind: 'json', version: 'v1', encoding: 'json', list: false, pretty: false };

const MAX_CACHED = 256;
/** Unusually long headers are parsed each time instead of being cached. */
const MAX_CACHED_LENGTH = 1024;
const cache = new Map<string, Representation | 'not-acceptable'>();

export function negotiateRepresentation(accept: string): Representation | 'not-acceptable' {
  if (accept === '' || accept === 'application/json' || accept === '*/*') return PLAIN_JSON;
  const known = cache.get(accept);
  if (known !== undefined) return known;
  const result = negotiate(accept);
  if (accept.length <= MAX_CACHED_LENGTH) {
    if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value!);
    cache.set(accept, result);
  }
  return result;
}

function negotiate(accept: string): Representation | 'not-acceptable' {
  for (const clause of parseAccept(accept)) {
    for (const encoding of ['json', 'yaml'] as const) {
      const result = accepts(clause, encoding) ? representation(clause, encoding) : undefined;
      if (result !== undefined) return result;
    }
  }
  return 'not-acceptable';
}

function representation({ params }: AcceptClause, encoding: 'json' | 'yaml'): Representation | undefined {
  const stream = params.get('stream');
  if (stream !== undefined && stream !== '' && stream !== 'watch') return undefined;
  const pretty = params.get('pretty') === '1';
  const as = params.get('as');
  const group = params.get('g');
  const version = params.get('v');
  if (as === undefined && group === undefined && version === undefined) {
    return { kind: encoding, version: 'v1', encoding, list: false, pretty };
  }
  if (group !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined;
  switch (as) {
    case 'Table':
      return { kind: 'table', version, encoding, list: false, pretty };
    case 'PartialObjectMetadata':
      return { kind: 'partial', version, encoding, list: false, pretty };
    case 'PartialObjectMetadataList':
      return { kind: 'partial', version, encoding, list: true, pretty };
    default:
      return undefined;
  }
}
