/** Negotiates the encoding of OpenAPI documents. */
import { accepts, parseAccept } from '#engine/request/accept-header.ts';

/**
 * The protobuf subtypes that clients send. kubectl up to 1.32 sends the first, whose `@` is not legal in a media type.
 */
const PROTOBUF_SUBTYPES: readonly string[] = [
  'com.github.proto-openapi.spec.v2@v1.0+protobuf',
  'com.github.proto-openapi.spec.v2.v1.0+protobuf',
];

/** The content type of protobuf responses. kube-apiserver uses it for both request subtypes. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

export function negotiateOpenApiV2(accept: string): 'json' | 'protobuf' | 'not-acceptable' {
  if (accept === '') return 'json';
  for (const clause of parseAccept(accept)) {
    if (accepts(clause, 'json')) return 'json';
    if (PROTOBUF_SUBTYPES.some((subtype) => accepts(clause, subtype))) return 'protobuf';
  }
  return 'not-acceptable';
}

/** Negotiates OpenAPI v3, which is served as JSON only. */
export function negotiateOpenApiV3(accept: string): 'json' | 'not-acceptable' {
  if (accept === '') return 'json';
  return parseAccept(accept).some((clause) => accepts(clause, 'json')) ? 'json' : 'not-acceptable';
}
