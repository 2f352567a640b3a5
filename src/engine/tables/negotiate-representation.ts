/**
 * In which form a client wants an object or a list: itself, a Table for people, or its metadata only.
 * Runs on each request; the headers of real clients repeat, so the answers are remembered.
 */
import { accepts, parseAccept, type AcceptClause } from '#engine/tables/accept-header.ts';

export type MetaVersion = 'v1' | 'v1beta1';

export interface Representation {
  /** `json` and `yaml` are the object itself. */
  readonly kind: 'json' | 'yaml' | 'table' | 'partial';
  /** The version of meta.k8s.io that Table and PartialObjectMetadata are asked in. */
  readonly version: MetaVersion;
  /** How a table or partial metadata is written; for the object itself the same as `kind`. */
  readonly encoding: 'json' | 'yaml';
  /** `partial` was asked as PartialObjectMetadataList, which only a list can answer. */
  readonly list: boolean;
  /** The header itself asks for indented output. */
  readonly pretty: boolean;
}

/** What a 406 names. */
export const ACCEPTED_TYPES: readonly string[] = ['application/json', 'application/yaml'];

const PLAIN_JSON: Representation = { kind: 'json', version: 'v1', encoding: 'json', list: false, pretty: false };

const MAX_REMEMBERED = 256;
/** Odd long headers are parsed each time instead of being kept. */
const MAX_REMEMBERED_LENGTH = 1024;
const remembered = new Map<string, Representation | 'not-acceptable'>();

export function negotiateRepresentation(accept: string): Representation | 'not-acceptable' {
  if (accept === '' || accept === 'application/json' || accept === '*/*') return PLAIN_JSON;
  const known = remembered.get(accept);
  if (known !== undefined) return known;
  const answer = negotiate(accept);
  if (accept.length <= MAX_REMEMBERED_LENGTH) {
    if (remembered.size >= MAX_REMEMBERED) remembered.delete(remembered.keys().next().value!);
    remembered.set(accept, answer);
  }
  return answer;
}

function negotiate(accept: string): Representation | 'not-acceptable' {
  for (const clause of parseAccept(accept)) {
    for (const encoding of ['json', 'yaml'] as const) {
      const answer = accepts(clause, encoding) ? representation(clause, encoding) : undefined;
      if (answer !== undefined) return answer;
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
