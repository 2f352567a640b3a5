/** Names that the server knows, for shells that complete them. Whoever cannot be asked has none: a shell shows no errors. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import type { Candidate, Kind } from '#cli/completion/complete-words.ts';
import { collectionPath } from '#client/resource-path.ts';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { isRecord, type ResourceType } from '#kube/meta.ts';

/** More than anybody reads. */
const MAX_NAMES = 500;

const TYPES: Readonly<Record<Kind, ResourceType>> = {
  vm: VIRTUAL_MACHINES,
  vmi: VIRTUAL_MACHINE_INSTANCES,
  pvc: PERSISTENT_VOLUME_CLAIMS,
  namespace: NAMESPACES,
};

type Api = Pick<ApiConnection, 'get' | 'namespace'>;

/** Those that begin with what was typed. Throws as `api.get` does. */
export async function liveNames(
  api: Api,
  { kind, prefix }: { readonly kind: Kind; readonly prefix: string },
  typed: string,
): Promise<Candidate[]> {
  const type = TYPES[kind];
  const path = type.namespaced ? collectionPath(type, api.namespace) : collectionPath(type);
  const answer = await api.get(`${path}?limit=${MAX_NAMES}`);
  const items = isRecord(answer) && Array.isArray(answer['items']) ? (answer['items'] as unknown[]) : [];
  return items
    .flatMap((item) => (isRecord(item) && isRecord(item['metadata']) ? [String(item['metadata']['name'])] : []))
    .map((name) => ({ word: prefix + name, help: '' }))
    .filter(({ word }) => word.startsWith(typed));
}
