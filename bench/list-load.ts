/** Measures how long a list takes: one client lists a namespace repeatedly, whole or in pages, over HTTP/2. */
import { FIELDS } from './operations.ts';
import { collectionPath } from './parcel.ts';
import { exchange, RawConnection, type Connection, type Target } from './raw-h2.ts';
import { median } from './statistics.ts';

export interface ListsJob {
  readonly kind: 'lists';
  readonly target: Target;
  readonly namespace: string;
  readonly items: number;
  /** Undefined: everything in one response. */
  readonly pageItems?: number;
  readonly times: number;
}

/** Returns the median in milliseconds of all lists except the first. */
export async function measureLists({ target, namespace, items, pageItems, times }: ListsJob): Promise<number> {
  const connection = await RawConnection.connect(target, FIELDS);
  const durationsMs: number[] = [];
  for (let turn = 0; turn <= times; turn++) {
    const from = performance.now();
    const bytes = await listAll(connection, collectionPath(namespace), pageItems);
    if (turn > 0) durationsMs.push(performance.now() - from);
    const names = bytes.reduce((sum, page) => sum + count(page, '"uid":"'), 0);
    if (names !== items) throw new Error(`Cannot measure lists: ${names} objects were received; expected ${items}`);
  }
  connection.close();
  return median(durationsMs);
}

async function listAll(connection: Connection, path: string, pageItems: number | undefined): Promise<Buffer[]> {
  const pages: Buffer[] = [];
  let query = pageItems === undefined ? '' : `?limit=${pageItems}`;
  for (;;) {
    const { status, body } = await exchange(connection, 'GET', `${path}${query}`);
    if (status !== 200) throw new Error(`Cannot measure lists: the response has status ${status}`);
    pages.push(body);
    // The metadata of a list are before or after its items.
    const [start, end] = [body.toString('latin1', 0, 1000), body.toString('latin1', Math.max(0, body.length - 1000))];
    const next = /"continue":"([^"]+)"/.exec(`${start}\n${end}`)?.[1];
    if (next === undefined) return pages;
    query = `?limit=${pageItems}&continue=${encodeURIComponent(next)}`;
  }
}

function count(bytes: Buffer, text: string): number {
  let found = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) found++;
  return found;
}
