import type { ApiConnection } from '#cli/api-connection.ts';
import { listAll } from '#cli/list-all.ts';
import { collectionPath } from '#client/resource-path.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';

/** Only what machine types are told by. Throws as `api.get` does. */
export function readNodes(
  api: Pick<ApiConnection, 'get'>,
  say: (line: string) => void,
): Promise<Pick<Node, 'metadata'>[]> {
  const pick = (object: unknown) => ({ metadata: (object as Node).metadata });
  return listAll(api, { path: collectionPath(NODES) }, pick, say);
}
