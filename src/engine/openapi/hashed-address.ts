/**
 * Caching of OpenAPI v3 documents. The index links each document with its hash, so a hashed URL never changes and
 * clients may cache it forever.
 */
import type { ServedDocument } from '#engine/discovery/served-document.ts';
import type { BytesResponse } from '#engine/request/request.ts';

/** Headers of a document at its hashed URL. One year is the longest max-age that caches honor. */
export const IMMUTABLE_CACHE_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'public, immutable, max-age=31536000',
};

/** Returns the redirect from a URL with an outdated hash to the current document. */
export function redirectToCurrentHash(path: string, { hash, etag }: ServedDocument): BytesResponse {
  const location = `${path}?hash=${hash}`;
  return {
    status: 301,
    contentType: 'text/html; charset=utf-8',
    headers: { location, etag, vary: 'Accept' },
    body: Buffer.from(`<a href="${location}">Moved Permanently</a>.\n\n`),
  };
}
