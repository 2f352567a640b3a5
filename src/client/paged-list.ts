/** Lists all objects in pages, as one consistent state. */
import type { ListOptions, Reader } from '#client/client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

interface Listing<T extends KubeObject> {
  readonly items: Stored<T>[];
  readonly resourceVersion: string;
}

type ListAllOptions = Omit<ListOptions, 'limit' | 'continue'> & { readonly pageSize?: number };

const PAGE_SIZE = 500;
const MAX_PAGED_ATTEMPTS = 3;
const MAX_PAGES = 100_000;

/**
 * Returns all pages of one revision. Starts again if the revision expires in between; after a few attempts, lists
 * everything at once, which cannot expire.
 */
export async function listAll<T extends KubeObject>(
  reader: Pick<Reader, 'list'>,
  type: ResourceType<T>,
  { pageSize = PAGE_SIZE, ...options }: ListAllOptions = {},
): Promise<Listing<T>> {
  for (let attempt = 0; attempt < MAX_PAGED_ATTEMPTS; attempt++) {
    const listing = await listPages(reader, type, { ...options, limit: pageSize });
    if (listing !== undefined) return listing;
  }
  const whole = await reader.list(type, options);
  return { items: whole.items, resourceVersion: whole.metadata.resourceVersion };
}

/** Returns undefined if the pages are not of the same revision. */
async function listPages<T extends KubeObject>(
  reader: Pick<Reader, 'list'>,
  type: ResourceType<T>,
  options: ListOptions,
): Promise<Listing<T> | undefined> {
  const first = await reader.list(type, options);
  const { resourceVersion } = first.metadata;
  const items = first.items;
  // A continued list gets its revision from the token alone.
  const { resourceVersion: _, resourceVersionMatch: __, ...rest } = options;
  let token = first.metadata.continue;
  for (let pages = 1; token !== undefined && token !== ''; pages++) {
    if (pages >= MAX_PAGES) return undefined;
    const page = await nextPage(reader, type, { ...rest, continue: token });
    if (page === undefined || page.metadata.resourceVersion !== resourceVersion) return undefined;
    for (const item of page.items) items.push(item);
    token = page.metadata.continue;
  }
  return { items, resourceVersion };
}

async function nextPage<T extends KubeObject>(
  reader: Pick<Reader, 'list'>,
  type: ResourceType<T>,
  options: ListOptions,
) {
  try {
    return await reader.list(type, options);
  } catch (error) {
    if (error instanceof ApiError && error.code === 410) return undefined;
    throw error;
  }
}
