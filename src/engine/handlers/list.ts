/** GET of a collection: whole, by selector, in pages of one consistent revision, or at a past revision. */
import { prepareEntries, type Call } from '#engine/handlers/call.ts';
import { idPrefix, splitId, entryFilter, matchUnits, onlyName } from '#engine/registry/stored-entries.ts';
import { awaitRevision, tooLargeRevision } from '#engine/handlers/await-revision.ts';
import {
  decodeContinue,
  encodeContinue,
  expiredContinue,
  type ContinueToken,
} from '#engine/handlers/continue-token.ts';
import { respondList } from '#engine/handlers/respond.ts';
import { listOptions, type ListRequestOptions } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { RevisionGoneError, type Entry, type StoreListing, type ListRange } from '#engine/store/store.ts';
import { gone } from '#kube/api-error.ts';
import type { ListMeta } from '#kube/meta.ts';

export async function listObjects(call: Call): Promise<ApiResponse> {
  const options = listOptions(call.request.query);
  const token = options.continue === '' ? undefined : decodeContinue(options.continue);
  if (options.resourceVersion !== undefined && token === undefined) await awaitRevision(call, options.resourceVersion);
  const { entries, listMeta } = await page(call, options, token);
  return respondList(call, entries, listMeta);
}

/** The time to undo one change for a list of a past revision, in units of lib/fair-turns.ts. */
const UNDO_UNITS = 3;

interface Page {
  readonly entries: readonly Entry[];
  readonly listMeta: ListMeta;
}

/** Returns one page of the matching entries. Also used by deletecollection. */
export async function page(call: Call, options: ListRequestOptions, token?: ContinueToken): Promise<Page> {
  const { resource } = call.served;
  const filter = entryFilter(resource, options);
  const range: ListRange = {
    prefix: idPrefix(resource, call.route.namespace),
    after: token?.after,
    atRevision: revisionToShow(options, token),
    // With a filter, the limit counts matches, which the store does not know.
    limit: filter === undefined && options.limit > 0 ? options.limit : undefined,
  };
  const pause = call.pace.spend(readUnits(call, range));
  if (pause !== undefined) await pause;
  const listing = read(call, range, token);
  if (filter === undefined) return { entries: listing.entries, listMeta: metaOf(listing, options.limit > 0, true) };

  const name = onlyName(options.fields);
  const candidates =
    name === undefined ? listing.entries : listing.entries.filter(({ id }) => splitId(id).name === name);
  const reading = prepareEntries(call, candidates);
  if (reading !== undefined) await reading;
  const matching: Entry[] = [];
  for (const entry of candidates) {
    const turn = call.pace.spend(matchUnits(options, entry));
    if (turn !== undefined) await turn;
    if (filter(entry)) matching.push(entry);
  }
  const shown = options.limit > 0 ? matching.slice(0, options.limit) : matching;
  const cut = { entries: shown, revision: listing.revision, remaining: matching.length - shown.length };
  return { entries: shown, listMeta: metaOf(cut, options.limit > 0, false) };
}

/** Estimates the time to read a range: one unit for each entry, and more for changes since a past revision. */
function readUnits(
  { store, served }: Call,
  { prefix, after, limit = Infinity, atRevision = store.revision }: ListRange,
) {
  const { remaining } = store.list(served.resource.collection, { prefix, after, limit: 0 });
  return Math.min(remaining, limit) + Math.max(0, store.revision - atRevision) * UNDO_UNITS;
}

function revisionToShow(options: ListRequestOptions, token: ContinueToken | undefined): number | undefined {
  if (token !== undefined) return token.revision < 0 ? undefined : token.revision;
  return options.exact ? options.resourceVersion : undefined;
}

function read(call: Call, range: ListRange, token: ContinueToken | undefined): StoreListing {
  const { revision } = call.store;
  if (range.atRevision !== undefined && range.atRevision > revision) throw tooLargeRevision(range.atRevision, revision);
  try {
    return call.store.list(call.served.resource.collection, range);
  } catch (error) {
    if (!(error instanceof RevisionGoneError)) throw error;
    if (token !== undefined) throw expiredContinue(token.after);
    throw gone('The resourceVersion for the provided list is too old.');
  }
}

function metaOf({ entries, revision, remaining }: StoreListing, limited: boolean, counted: boolean): ListMeta {
  const last = entries.at(-1);
  if (!limited || remaining === 0 || last === undefined) return { resourceVersion: String(revision) };
  return {
    resourceVersion: String(revision),
    continue: encodeContinue({ revision, after: last.id }),
    // Kubernetes omits the count if a selector makes it costly.
    ...(counted ? { remainingItemCount: remaining } : {}),
  };
}
