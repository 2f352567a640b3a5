/** Reads a whole collection in pages. What is kept of each object is the caller's to pick: a fleet is large. */
import { AnswerTooLong, type ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { ApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

const PAGE_SIZE = 500;
/** Objects have 1.5 MiB at most: so few fit into any answer. */
const SMALLEST_PAGE = 8;
const MAX_PAGES = 100_000;

export interface Collection {
  readonly path: string;
  readonly labelSelector?: string;
}

/**
 * What `pick` makes of each object, undefined left out. All are of one revision: where the server has forgotten it
 * half-way, the list starts again once, and `say` is told. Throws as `api.get` does.
 */
export async function listAll<T>(
  api: Pick<ApiConnection, 'get'>,
  collection: Collection,
  pick: (object: unknown) => T | undefined,
  say: (line: string) => void,
): Promise<T[]> {
  try {
    return await listPages(api, collection, pick);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 410) throw error;
    say(`The list expired while it was read (${error.message}); reading it again from the beginning.`);
    return await listPages(api, collection, pick);
  }
}

async function listPages<T>(
  api: Pick<ApiConnection, 'get'>,
  collection: Collection,
  pick: (object: unknown) => T | undefined,
): Promise<T[]> {
  const picked: T[] = [];
  let [limit, token] = [PAGE_SIZE, ''];
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(api, collection, { limit, token });
    if (page === undefined) {
      limit = Math.max(SMALLEST_PAGE, Math.floor(limit / 4));
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

/** Undefined where the page is too long and a shorter one may be had. */
async function readPage(
  api: Pick<ApiConnection, 'get'>,
  { path, labelSelector }: Collection,
  { limit, token }: { limit: number; token: string },
) {
  const query = new URLSearchParams({
    limit: String(limit),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(token === '' ? {} : { continue: token }),
  });
  try {
    return pageOf(await api.get(`${path}?${query.toString()}`), path);
  } catch (error) {
    if (error instanceof AnswerTooLong && limit > SMALLEST_PAGE) return undefined;
    throw error;
  }
}

function pageOf(answer: unknown, path: string): { readonly items: readonly unknown[]; readonly token: string } {
  if (!isRecord(answer) || !Array.isArray(answer['items'])) {
    throw new CommandError(`Cannot list ${path}: the response is not a list`);
  }
  const metadata = isRecord(answer['metadata']) ? answer['metadata'] : {};
  const token = metadata['continue'];
  return { items: answer['items'], token: typeof token === 'string' ? token : '' };
}
