/** DELETE of a collection: deletes each object that currently matches, by the same rules as a single delete. */
import type { Call } from '#engine/handlers/call.ts';
import { splitId } from '#engine/registry/stored-entries.ts';
import { deleteNamed, readDeleteOptions } from '#engine/handlers/delete.ts';
import { page } from '#engine/handlers/list.ts';
import { decodeContinue } from '#engine/handlers/continue-token.ts';
import { respondList } from '#engine/handlers/respond.ts';
import { listOptions } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { isApiError } from '#kube/api-error.ts';

/** Enough to share commits, few enough to leave capacity for other requests. */
const CONCURRENT_DELETES = 64;

export async function deleteCollection(call: Call): Promise<ApiResponse> {
  const options = await readDeleteOptions(call);
  const listing = listOptions(call.request.query);
  const token = listing.continue === '' ? undefined : decodeContinue(listing.continue);
  const { entries, listMeta } = await page(call, listing, token);
  // A refused delete does not stop the others; the first error is the response.
  const errors: unknown[] = [];
  for (let start = 0; start < entries.length; start += CONCURRENT_DELETES) {
    const results = await Promise.allSettled(
      entries.slice(start, start + CONCURRENT_DELETES).map(({ id }) => {
        const { name, namespace } = splitId(id);
        return deleteNamed(call, name, namespace, options);
      }),
    );
    for (const result of results) {
      // An object that is already deleted counts as success.
      if (result.status === 'rejected' && !isApiError(result.reason, 'NotFound')) errors.push(result.reason);
    }
  }
  if (errors.length > 0) throw errors[0];
  return respondList(call, entries, listMeta);
}
