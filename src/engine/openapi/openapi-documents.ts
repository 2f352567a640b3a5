/**
 * The OpenAPI documents of one registry generation, each built on first use. The owner creates a new instance when the
 * kinds change. HTTP semantics (status, If-None-Match, compression) belong to the caller.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { jsonDocument, ServedDocument } from '#engine/discovery/served-document.ts';
import { encodeGnosticV2 } from '#engine/openapi/gnostic-v2.ts';
import { mergeRemoteV2, type RemoteOpenApi } from '#engine/openapi/remote-v2.ts';
import { openApiV2, type SwaggerDocument } from '#engine/openapi/v2.ts';
import { documentPath, openApiV3Document } from '#engine/openapi/v3.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { notAcceptable } from '#kube/api-error.ts';
import { accepts, parseAccept } from '#engine/request/accept-header.ts';

const ROOT = '/openapi/v3';
const JSON_TYPE = 'application/json';

interface OpenApiV3Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

export class OpenApiDocuments {
  readonly #resources: readonly Resource[];
  readonly #places: ReadonlyMap<string, { group: string; version: string }>;
  readonly #remote: readonly RemoteOpenApi[];
  readonly #v3 = new Map<string, ServedDocument>();
  #index: ServedDocument | undefined;
  #v2Json: ServedDocument | undefined;
  #v2Protobuf: ServedDocument | undefined;

  /**
   * `remote` lists the versions of aggregated API servers. The index links to their documents, which they serve
   * themselves.
   */
  constructor(resources: readonly Resource[], remote: readonly RemoteOpenApi[] = []) {
    this.#resources = resources;
    this.#remote = remote;
    const places = resources.map(({ group, version }) => [documentPath(group, version), { group, version }] as const);
    this.#places = new Map(places.sort(([a], [b]) => compareText(a, b)));
  }

  /**
   * Returns the document at /openapi/v2, /openapi/v3 or below, or undefined (404). Throws 406 if the client accepts no
   * encoding.
   */
  find(path: string, accept: string): ServedDocument | undefined {
    if (path === '/openapi/v2') {
      const encoding = negotiateOpenApiV2(accept);
      if (encoding === 'not-acceptable') throw notAcceptable([JSON_TYPE, OPENAPI_V2_PROTOBUF]);
      return this.v2(encoding);
    }
    const document = path === ROOT || path === `${ROOT}/` ? this.v3Index() : this.#below(path);
    if (document !== undefined && negotiateOpenApiV3(accept) === 'not-acceptable') throw notAcceptable([JSON_TYPE]);
    return document;
  }

  #below(path: string): ServedDocument | undefined {
    return path.startsWith(`${ROOT}/`) ? this.v3(path.slice(ROOT.length + 1)) : undefined;
  }

  /** Returns the index at /openapi/v3. Builds all documents, because the index contains their hashes. */
  v3Index(): ServedDocument {
    return (this.#index ??= jsonDocument(openApiV3Index(this.#hashes())));
  }

  #hashes(): Map<string, string> {
    const hashes = new Map<string, string>();
    for (const path of this.#places.keys()) hashes.set(path, this.v3(path)!.hash);
    for (const { group, version, openApiV3Hash } of this.#remote) {
      if (openApiV3Hash !== undefined) hashes.set(documentPath(group, version), openApiV3Hash);
    }
    return new Map([...hashes].sort(([a], [b]) => compareText(a, b)));
  }

  /**
   * Returns the document at /openapi/v3/<path>, or undefined (404). The path is `api/v1` or `apis/<group>/<version>`.
   */
  v3(path: string): ServedDocument | undefined {
    const known = this.#v3.get(path);
    if (known !== undefined) return known;
    const place = this.#places.get(path);
    if (place === undefined) return undefined;
    const document = jsonDocument(openApiV3Document(this.#resources, place.group, place.version));
    this.#v3.set(path, document);
    return document;
  }

  /** Returns the document at /openapi/v2. */
  v2(encoding: 'json' | 'protobuf'): ServedDocument {
    if (encoding === 'json') return (this.#v2Json ??= jsonDocument(this.#swagger()));
    return (this.#v2Protobuf ??= new ServedDocument(OPENAPI_V2_PROTOBUF, encodeGnosticV2(this.#swagger())));
  }

  #swagger(): SwaggerDocument {
    return mergeRemoteV2(
      openApiV2(this.#resources),
      this.#remote.flatMap(({ openApiV2: document }) => document ?? []),
    );
  }
}

function openApiV3Index(hashes: ReadonlyMap<string, string>): OpenApiV3Index {
  const entries = [...hashes].map(([path, hash]) => [path, { serverRelativeURL: `${ROOT}/${path}?hash=${hash}` }]);
  return { paths: Object.fromEntries(entries) };
}

/**
 * The protobuf subtypes that clients send. kubectl up to 1.32 sends the first, whose `@` is not legal in a media type.
 */
const PROTOBUF_SUBTYPES: readonly string[] = [
  'com.github.proto-openapi.spec.v2@v1.0+protobuf',
  'com.github.proto-openapi.spec.v2.v1.0+protobuf',
];

/** The content type of protobuf responses. kube-apiserver uses it for both request subtypes. */
const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

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
