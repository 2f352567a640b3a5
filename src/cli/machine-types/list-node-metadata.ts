import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { collectionPath } from '#client/resource-path.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';

/** Lists the metadata of nodes, which contains their machine types. Throws like `api.get`. */
export function listNodeMetadata(
  api: Pick<ApiConnection, 'get'>,
  report: (line: string) => void,
): Promise<Pick<Node, 'metadata'>[]> {
  const pick = (object: unknown) => ({ metadata: (object as Node).metadata });
  return listCollection(api, { path: collectionPath(NODES) }, pick, report);
}
