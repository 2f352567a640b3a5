/** The index of OpenAPI v3 names each document with its hash: at that address it never changes, so that clients keep it. */
import type { ServedDocument } from '#engine/discovery/served-document.ts';
import type { BytesResponse } from '#engine/request.ts';

/** A year is as long as caches go. */
export const UNTIL_IT_CHANGES: Readonly<Record<string, string>> = {
  'cache-control': 'public, immutable, max-age=31536000',
};

/** For a hash that was right once. */
export function movedTo(path: string, { hash, etag }: ServedDocument): BytesResponse {
  const location = `${path}?hash=${hash}`;
  return {
    status: 301,
    contentType: 'text/html; charset=utf-8',
    headers: { location, etag, vary: 'Accept' },
    body: Buffer.from(`<a href="${location}">Moved Permanently</a>.\n\n`),
  };
}
