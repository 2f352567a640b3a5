/**
 * Builds and bounds the history of an identity record. One entry holds the changes of one write with the same cause; an
 * entry that would be too large is split. The oldest entries are dropped first; the newest is always kept. Pure.
 */
import { countSilentDevices, isPortChange, renderChanges } from '#api/identity/identity-change-text.ts';
import { MAX_HISTORY, type HistoryEntry, type IdentityChange } from '#api/virtual-machine-identity/kind.ts';

/** Limit of an entry with more than one change. A single change is at most one device row, whose size is bounded. */
export const MAX_ENTRY_BYTES = 48 * 1024;
export const MAX_HISTORY_BYTES = 256 * 1024;
/** Further sentences are not listed; the changes are. */
const MAX_TEXTS = 10;
const MAX_TEXT = 1024;

export interface ChangeCause {
  readonly cause: string;
  readonly by?: string;
  /** The uid of the instance whose start brought the change. */
  readonly instance?: string;
}

interface CausedChange {
  readonly change: IdentityChange;
  readonly cause: ChangeCause;
}

/** Returns entries for the changes of one write, one for each cause, in the order of the changes. */
export function buildHistoryEntries(
  at: string,
  changes: readonly CausedChange[],
  summary = renderSummary,
): HistoryEntry[] {
  const groups = Map.groupBy(mergeMinorChanges(changes), ({ cause }) =>
    JSON.stringify([cause.cause, cause.by, cause.instance]),
  );
  return [...groups.values()].flatMap((group) => {
    const [{ cause } = { cause: { cause: '' } }] = group;
    const parts = splitBySize(group.map(({ change }) => change));
    return parts.map((part, i) => ({
      at,
      what: summary(part) + (parts.length === 1 ? '' : ` (part ${i + 1} of ${parts.length})`),
      ...cause,
      changes: part,
    }));
  });
}

/** Minor changes and root ports join the entry of the change that came with them. */
function mergeMinorChanges(changes: readonly CausedChange[]): CausedChange[] {
  const isMinor = ({ change }: CausedChange) => isPortChange(change) || renderChanges([change]).length === 0;
  const leading = changes.findLast((one) => !isMinor(one) && one.change.field.startsWith('devices.'));
  return leading === undefined
    ? [...changes]
    : changes.map((one) => (isMinor(one) ? { ...one, cause: leading.cause } : one));
}

function splitBySize(changes: readonly IdentityChange[]): IdentityChange[][] {
  const parts: IdentityChange[][] = [];
  let bytes = Infinity;
  for (const change of changes) {
    const size = bytesOf(change);
    if (bytes + size > MAX_ENTRY_BYTES) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(change);
    bytes += size;
  }
  return parts;
}

/** Returns the changes as one line. */
export function renderSummary(changes: readonly IdentityChange[]): string {
  const texts = renderChanges(changes);
  if (texts.length === 0) return `minor properties of ${countText(countSilentDevices(changes), 'device')} changed`;
  const more = texts.length - MAX_TEXTS;
  const listed = more > 0 ? [...texts.slice(0, MAX_TEXTS), countText(more, 'more change')] : texts;
  const text = listed.join('; ');
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`;
}

const countText = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Returns the history with the entries at its end, cut from its beginning until it is within its bounds. */
export function appendHistory(
  history: readonly HistoryEntry[] = [],
  entries: readonly HistoryEntry[] = [],
): HistoryEntry[] {
  const all = [...history, ...entries].slice(-MAX_HISTORY);
  let bytes = 0;
  const cut = all.findLastIndex((entry) => {
    bytes += bytesOf(entry);
    return bytes > MAX_HISTORY_BYTES;
  });
  return all.slice(Math.min(cut + 1, all.length - 1));
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
