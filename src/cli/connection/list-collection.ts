/** Lists a whole collection in pages. The caller picks what to keep of each object, because a fleet may be large. */
import { ResponseTooLargeError, type ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { ApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

const PAGE_SIZE = 500;
/** Objects have at most 1.5 MiB, so a response can always hold this many. */
const MIN_PAGE_SIZE = 8;
const MAX_PAGES = 100_000;

interface ListedCollection {
  readonly path: string;
  readonly labelSelector?: string;
}

/**
 * Returns the results of `pick`, without undefined. All objects are of one revision. If the server drops that revision
 * during the list, the list starts again once, with a message to `report`. Throws like `api.get`.
 */
export async function listCollection<T>(
  api: Pick<ApiConnection, 'get'>,
  collection: ListedCollection,
  pick: (object: unknown) => T | undefined,
  report: (line: string) => void,
): Promise<T[]> {
  try {
    return await listPages(api, collection, pick);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 410) throw error;
    report(`Note: the list expired while it was read (${error.message}); reading it again from the beginning.`);
    return await listPages(api, collection, pick);
  }
}

async function listPages<T>(
  api: Pick<ApiConnection, 'get'>,
  collection: ListedCollection,
  pick: (object: unknown) => T | undefined,
): Promise<T[]> {
  const picked: T[] = [];
  let [limit, token] = [PAGE_SIZE, ''];
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(api, collection, { limit, token });
    if (page === undefined) {
      limit = Math.max(MIN_PAGE_SIZE, Math.floor(limit / 4));
      continue;
    }
    for (const object of page.items) {
      const one = pick(object);
      if (one !== undefined) picked.push(one);
    }
    if (page.token === '') return picked;
    token = page.token;
  }
  throw new CommandError(`Cannot list ${collection.path}: it has more than ${MAX_PAGES} pages`);
}

/** Returns undefined if the page is too large and a smaller one is possible. */
async function readPage(
  api: Pick<ApiConnection, 'get'>,
  { path, labelSelector }: ListedCollection,
  { limit, token }: { limit: number; token: string },
) {
  const query = new URLSearchParams({
    limit: String(limit),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(token === '' ? {} : { continue: token }),
  });
  try {
    return parsePage(await api.get(`${path}?${query.toString()}`), path);
  } catch (error) {
    if (error instanceof ResponseTooLargeError && limit > MIN_PAGE_SIZE) return undefined;
    throw error;
  }
}

function parsePage(response: unknown, path: string): { readonly items: readonly unknown[]; readonly token: string } {
  if (!isRecord(response) || !Array.isArray(response['items'])) {
    throw new CommandError(`Cannot list ${path}: the response is not a list`);
  }
  const metadata = isRecord(response['metadata']) ? response['metadata'] : {};
  const token = metadata['continue'];
  return { items: response['items'], token: typeof token === 'string' ? token : '' };
}
