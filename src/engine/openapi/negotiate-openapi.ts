/** Which encoding of an OpenAPI document a client takes. */
import { accepts, parseAccept } from '#engine/tables/accept-header.ts';

/** The first is what kubectl up to 1.32 asks for; its `@` is no legal media type, hence the second. */
const PROTOBUF_SUBTYPES: readonly string[] = [
  'com.github.proto-openapi.spec.v2@v1.0+protobuf',
  'com.github.proto-openapi.spec.v2.v1.0+protobuf',
];

/** As kube-apiserver answers, whichever of the two was asked for. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

export function negotiateOpenApiV2(accept: string): 'json' | 'protobuf' | 'not-acceptable' {
  if (accept === '') return 'json';
  for (const clause of parseAccept(accept)) {
    if (accepts(clause, 'json')) return 'json';
    if (PROTOBUF_SUBTYPES.some((subtype) => accepts(clause, subtype))) return 'protobuf';
  }
  return 'not-acceptable';
}

/** OpenAPI v3 is served as JSON only. */
export function negotiateOpenApiV3(accept: string): 'json' | 'not-acceptable' {
  if (accept === '') return 'json';
  return parseAccept(accept).some((clause) => accepts(clause, 'json')) ? 'json' : 'not-acceptable';
}
