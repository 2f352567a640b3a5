/** Handles all paths that are not resources: discovery, OpenAPI, version, health, metrics. */
import { noAggregation, type Aggregation } from '#engine/aggregation/aggregation.ts';
import { JSON_TYPE } from '#engine/encoding/media-types.ts';
import { openIdDocument } from '#engine/auth/service-accounts/openid.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { DiscoveryDocuments } from '#engine/discovery/discovery-documents.ts';
import type { ServedDocument } from '#engine/discovery/served-document.ts';
import { respondHealth, type HealthChecks } from '#engine/dispatch/health.ts';
import { OpenApiDocuments } from '#engine/openapi/openapi-documents.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { ApiHandler, ApiRequest, ApiResponse, BytesResponse } from '#engine/request/request.ts';
import { methodNotAllowed } from '#kube/api-error.ts';
import { VERSION } from '#lib/version.ts';
import { METRICS_CONTENT_TYPE, type MetricRegistry } from '#lib/metrics/metric-registry.ts';

export type PathHandler = (request: ApiRequest) => Promise<ApiResponse>;

interface PathParts {
  readonly registry: Registry;
  readonly metrics: MetricRegistry;
  readonly health: HealthChecks;
  /** The key whose public part /openid/v1/jwks serves. */
  readonly signingKey: SigningKey;
  /** Groups and versions of aggregated API servers, which serve their own documents. */
  readonly aggregation?: Aggregation;
  /** Returns the whole store as one file, for `selfsame backup`; the path exists only with it. */
  backup?(): Promise<Buffer>;
  /** host:port, as shown in /api. */
  serverAddress(): string;
}

const REMOTE_DOCUMENT = /^(?:\/openapi\/v3)?\/apis\/([^/]+)\/([^/]+)\/?$/;

const STORE_TYPE = 'application/vnd.sqlite3';

/** Smaller responses are not compressed, as in kube-apiserver. */
const GZIP_MIN_BYTES = 128 * 1024;

export function createPaths(parts: PathParts): PathHandler {
  const { registry, metrics, health, signingKey, serverAddress, aggregation = noAggregation } = parts;
  let generation = '';
  let discovery: DiscoveryDocuments;
  let openapi: OpenApiDocuments;

  /** Rebuilds documents on the first request after the kinds changed. */
  function refresh(): void {
    const current = `${registry.generation}.${aggregation.generation}`;
    if (generation === current) return;
    generation = current;
    const { versions } = aggregation;
    const taken = new Set(versions.map(({ group, version }) => `${group}/${version}`));
    const own = registry.resources.filter(({ group, version }) => !taken.has(`${group}/${version}`));
    discovery = new DiscoveryDocuments(own, serverAddress(), versions);
    openapi = new OpenApiDocuments(own, versions);
  }

  /**
   * Returns the aggregated API server of this document. Matches the exact path only, because paths below it were not
   * authorized here.
   */
  function findRemoteHandler({ method, path }: ApiRequest): ApiHandler | undefined {
    const [, group, version] = (method === 'GET' && REMOTE_DOCUMENT.exec(path)) || [];
    return group === undefined || version === undefined ? undefined : aggregation.find(group, version);
  }

  return async (request) => {
    const { path, method } = request;
    // A POST, so that backups are audited: they contain every Secret.
    if (path === '/backup' && method === 'POST' && parts.backup !== undefined) {
      return { status: 200, contentType: STORE_TYPE, body: await parts.backup() };
    }
    const response = await find(request);
    if (response === undefined) return pageNotFound();
    if (method !== 'GET') throw methodNotAllowed();
    return response;

    async function find({ query, accept }: ApiRequest): Promise<ApiResponse | undefined> {
      const remoteHandler = findRemoteHandler(request);
      if (remoteHandler !== undefined) return remoteHandler(request);
      const [, first = ''] = path.split('/', 2);
      switch (first) {
        case 'healthz':
        case 'livez':
        case 'readyz':
          return respondHealth(path, query, health);
        case 'version':
          return { status: 200, contentType: JSON_TYPE, body: Buffer.from(JSON.stringify(versionInfo, null, 2)) };
        case 'metrics':
          return { status: 200, contentType: METRICS_CONTENT_TYPE, body: Buffer.from(metrics.text()) };
        case '.well-known':
        case 'openid':
          return openIdDocument(path, signingKey, serverAddress());
        case 'openapi':
          refresh();
          return respondOpenApi(request, openapi.find(path, accept));
        case '':
        case 'api':
        case 'apis':
          refresh();
          return respondDocument(request, discovery.find(path, accept));
        default:
          return undefined;
      }
    }
  };
}

/** Paths without an API get no Status: kube-apiserver responds in plain text, and kubectl relies on it. */
export function pageNotFound(): BytesResponse {
  const headers = { 'x-content-type-options': 'nosniff' };
  const body = Buffer.from('404 page not found\n');
  return { status: 404, contentType: 'text/plain; charset=utf-8', headers, body };
}

/** A document at its hash may be cached forever; another hash is redirected to the current one. */
async function respondOpenApi(
  request: ApiRequest,
  document: ServedDocument | undefined,
): Promise<ApiResponse | undefined> {
  const hash = request.path.startsWith('/openapi/v3/') ? (request.query.get('hash') ?? '') : '';
  if (document === undefined || hash === '') return respondDocument(request, document);
  if (hash !== document.hash) return redirectToCurrentHash(request.path, document);
  return respondDocument(request, document, IMMUTABLE_CACHE_HEADERS);
}

async function respondDocument(
  request: ApiRequest,
  document: ServedDocument | undefined,
  more: Readonly<Record<string, string>> = {},
): Promise<ApiResponse | undefined> {
  if (document === undefined) return undefined;
  const { contentType, etag } = document;
  const headers: Record<string, string> = { etag, vary: 'Accept', ...more };
  if (document.matches(request.header?.('if-none-match'))) {
    return { status: 304, contentType, headers, body: Buffer.alloc(0) };
  }
  const zips = request.header?.('accept-encoding')?.includes('gzip') === true;
  if (!zips || document.body.length < GZIP_MIN_BYTES) return { status: 200, contentType, headers, body: document.body };
  return { status: 200, contentType, headers: { ...headers, 'content-encoding': 'gzip' }, body: await document.gzip() };
}

/** Headers of a document at its hashed URL. One year is the longest max-age that caches honor. */
const IMMUTABLE_CACHE_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'public, immutable, max-age=31536000',
};

/** Returns the redirect from a URL with an outdated hash to the current document. */
function redirectToCurrentHash(path: string, { hash, etag }: ServedDocument): BytesResponse {
  const location = `${path}?hash=${hash}`;
  return {
    status: 301,
    contentType: 'text/html; charset=utf-8',
    headers: { location, etag, vary: 'Accept' },
    body: Buffer.from(`<a href="${location}">Moved Permanently</a>.\n\n`),
  };
}

const KUBERNETES_MINOR = 32;

/** The response of /version. Clients use the minor version to determine the supported API. */
const versionInfo = {
  major: '1',
  minor: String(KUBERNETES_MINOR),
  gitVersion: `v1.${KUBERNETES_MINOR}.0+selfsame.${VERSION}`,
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: `node${process.versions.node}`,
  compiler: 'none',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
} as const;
