/** One client that lists a namespace over and over, whole or page by page, over HTTP/1.1: how long one list takes. */
import { FIELDS } from './operations.ts';
import { collectionPath } from './parcel.ts';
import { RawConnection1 } from './raw-h1.ts';
import { ask, type Connection, type Target } from './raw-h2.ts';
import { median } from './statistics.ts';

export interface ListsJob {
  readonly kind: 'lists';
  readonly target: Target;
  readonly namespace: string;
  readonly items: number;
  /** Undefined: all in one answer. */
  readonly pageItems?: number;
  readonly times: number;
}

/** The median of all but the first, in ms. */
export async function measureLists({ target, namespace, items, pageItems, times }: ListsJob): Promise<number> {
  const connection = await RawConnection1.connect(target, FIELDS);
  const tookMs: number[] = [];
  for (let turn = 0; turn <= times; turn++) {
    const from = performance.now();
    const bytes = await listAll(connection, collectionPath(namespace), pageItems);
    if (turn > 0) tookMs.push(performance.now() - from);
    const names = bytes.reduce((sum, page) => sum + count(page, '"uid":"'), 0);
    if (names !== items) throw new Error(`Cannot measure lists: ${names} objects came; expected ${items}`);
  }
  connection.close();
  return median(tookMs);
}

async function listAll(connection: Connection, path: string, pageItems: number | undefined): Promise<Buffer[]> {
  const pages: Buffer[] = [];
  let query = pageItems === undefined ? '' : `?limit=${pageItems}`;
  for (;;) {
    const { status, body } = await ask(connection, 'GET', `${path}${query}`);
    if (status !== 200) throw new Error(`Cannot measure lists: answered with ${status}`);
    pages.push(body);
    // The metadata of a list come before its items, or behind them.
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
