/** Determines whether a node exists. The API is asked before a node counts as gone, because the cache may be behind. */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

type NodeCheck = (name: string, options: { signal: AbortSignal }) => Promise<boolean>;

export function createNodeCheck(nodes: Pick<Informer<Node>, 'get'>, reader: Pick<Reader, 'get'>): NodeCheck {
  const readLive = createLiveReader(reader);
  return async (name, options) =>
    nodes.get(name) !== undefined || (await readLive(NODES, { name }, options)) !== undefined;
}
