/** GET of one object: returns the stored bytes. */
import type { Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { awaitRevision } from '#engine/handlers/await-revision.ts';
import { respondEntry } from '#engine/handlers/respond.ts';
import { assertStillBound } from '#engine/handlers/stored-access.ts';
import { revision } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { notFound } from '#kube/api-error.ts';

export function getObject(call: Call): ApiResponse | Promise<ApiResponse> {
  const { query } = call.request;
  const wanted = query.size === 0 ? null : query.get('resourceVersion');
  if (wanted === null || wanted === '' || wanted === '0') return readOne(call);
  return awaitRevision(call, revision(wanted)).then(() => {
    assertStillBound(call);
    return readOne(call);
  });
}

function readOne(call: Call): ApiResponse | Promise<ApiResponse> {
  const { resource } = call.served;
  const { namespace, name } = call.route;
  const entry = call.store.get(resource.collection, entryId(resource, namespace, name));
  if (entry === undefined) throw notFound(resource, name);
  return respondEntry(call, entry, { status: 200 });
}
