/** Reads object names from the server for shell completion. */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import type { CompletionCandidate } from '#lib/command-line/complete-words.ts';
import { collectionPath } from '#client/resource-path.ts';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { isRecord, type ResourceType } from '#kube/meta.ts';

/** More names would not help the user. */
const MAX_NAMES = 500;

/** The kinds that flags and arguments can complete. */
export const LIVE_KINDS: ReadonlyMap<string, ResourceType> = new Map<string, ResourceType>([
  ['vm', VIRTUAL_MACHINES],
  ['vmi', VIRTUAL_MACHINE_INSTANCES],
  ['vmsnapshot', VIRTUAL_MACHINE_SNAPSHOTS],
  ['pvc', PERSISTENT_VOLUME_CLAIMS],
  ['namespace', NAMESPACES],
]);

type Api = Pick<ApiConnection, 'get' | 'namespace'>;

/** Returns the names that begin with what was typed. Throws like `api.get`. */
export async function listLiveNames(
  api: Api,
  { kind, prefix }: { readonly kind: string; readonly prefix: string },
  typed: string,
): Promise<CompletionCandidate[]> {
  const type = LIVE_KINDS.get(kind);
  if (type === undefined) return [];
  const path = type.namespaced ? collectionPath(type, api.namespace) : collectionPath(type);
  const response = await api.get(`${path}?limit=${MAX_NAMES}`);
  const items = isRecord(response) && Array.isArray(response['items']) ? (response['items'] as unknown[]) : [];
  return items
    .flatMap((item) => (isRecord(item) && isRecord(item['metadata']) ? [String(item['metadata']['name'])] : []))
    .map((name) => ({ word: prefix + name, help: '' }))
    .filter(({ word }) => word.startsWith(typed));
}
