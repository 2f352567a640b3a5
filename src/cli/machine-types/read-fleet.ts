/** Reads the VMs of one or all namespaces, with their instances and identity records, and the nodes. */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { collectionPath } from '#client/resource-path.ts';
import { NODES, type Node } from '#kube/core-kinds.ts';
import { controllerUid, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

type Api = Pick<ApiConnection, 'get'>;

interface FleetQuery {
  readonly namespace?: string | undefined;
  /** Selects VMs by label. */
  readonly labelSelector?: string | undefined;
  /** Only VMs for which it returns true are kept. */
  readonly filter?: (vm: Stored<VirtualMachine>) => boolean;
  readonly report: (line: string) => void;
}

interface Fleet {
  readonly vms: readonly Stored<VirtualMachine>[];
  /** Instances by the uid of the VM that owns them. */
  readonly vmis: ReadonlyMap<string, Stored<VirtualMachineInstance>>;
}

/** Throws like `api.get`. */
export async function readFleet(api: Api, query: FleetQuery): Promise<Fleet> {
  const { namespace, labelSelector, filter, report } = query;
  const path = collectionPath(VIRTUAL_MACHINES, namespace);
  // The type is not checked, because the server validates objects.
  const pick = (object: unknown) => {
    const vm = object as Stored<VirtualMachine>;
    return filter === undefined || filter(vm) ? vm : undefined;
  };
  const vms = await listCollection(api, { path, ...(labelSelector !== undefined && { labelSelector }) }, pick, report);
  return { vms, vmis: await readOwned(api, VIRTUAL_MACHINE_INSTANCES, vms, query) };
}

/** Returns the identity records of VMs, by the uid of the VM. */
export function readRecords(
  api: Api,
  vms: readonly Stored<VirtualMachine>[],
  query: FleetQuery,
): Promise<ReadonlyMap<string, Stored<VirtualMachineIdentity>>> {
  return readOwned(api, VIRTUAL_MACHINE_IDENTITIES, vms, query);
}

/** Returns objects by the uid of the VM that owns them. Objects that only have the same name do not count. */
async function readOwned<T extends KubeObject>(
  api: Api,
  type: ResourceType<T>,
  vms: readonly Stored<VirtualMachine>[],
  { namespace, report }: FleetQuery,
): Promise<ReadonlyMap<string, Stored<T>>> {
  if (vms.length === 0) return new Map();
  const owners = new Set(vms.map(({ metadata }) => metadata.uid));
  const pick = (object: unknown): [string, Stored<T>] | undefined => {
    const owned = object as Stored<T>;
    const owner = controllerUid(owned);
    return owner !== undefined && owners.has(owner) ? [owner, owned] : undefined;
  };
  return new Map(await listCollection(api, { path: collectionPath(type, namespace) }, pick, report));
}

/** Lists the metadata of nodes, which contains their machine types. Throws like `api.get`. */
export function listNodeMetadata(api: Api, report: (line: string) => void): Promise<Pick<Node, 'metadata'>[]> {
  const pick = (object: unknown) => ({ metadata: (object as Node).metadata });
  return listCollection(api, { path: collectionPath(NODES) }, pick, report);
}
