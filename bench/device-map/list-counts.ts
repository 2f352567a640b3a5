/** The server's counts of its `list` calls, from its metrics. */
import { LIST_BYTES, LIST_CALLS, LIST_VMS } from '#plane/components/host-reader.ts';
import { JSON_FIELDS } from '../operations.ts';
import { RawConnection, type Target } from '../raw-h2.ts';

export interface ListCounts {
  /** The number of calls by node. */
  readonly calls: Readonly<Record<string, number>>;
  readonly vms: number;
  readonly bytes: number;
}

export async function readListCounts(target: Target): Promise<ListCounts> {
  const connection = await RawConnection.connect(target, JSON_FIELDS);
  try {
    const { status, body } = await connection.exchange('GET', '/metrics');
    if (status !== 200) throw new Error(`Cannot read the metrics: the response has status ${status}`);
    return parseCounts(body.toString('utf8'));
  } finally {
    connection.close();
  }
}

/** Reads the counts from the text of the metrics. Pure. */
export function parseCounts(text: string): ListCounts {
  return { calls: byNode(text, LIST_CALLS), vms: sum(byNode(text, LIST_VMS)), bytes: sum(byNode(text, LIST_BYTES)) };
}

/** Returns the counts between two readings. Pure. */
export function subtractCounts(before: ListCounts, after: ListCounts): ListCounts {
  const calls = Object.entries(after.calls).map(([node, count]) => [node, count - (before.calls[node] ?? 0)] as const);
  return {
    calls: Object.fromEntries(calls.filter(([, count]) => count > 0)),
    vms: after.vms - before.vms,
    bytes: after.bytes - before.bytes,
  };
}

function byNode(text: string, name: string): Record<string, number> {
  const found = [...text.matchAll(new RegExp(`^${name}\\{node="([^"]+)"\\} (\\d+)$`, 'gm'))];
  return Object.fromEntries(found.map(([, node, count]) => [node, Number(count)]));
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}
