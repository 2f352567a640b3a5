/** Reads VMs, and what belongs to each: all of a namespace, or of all. */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { listAll } from '#cli/list-all.ts';
import { collectionPath } from '#client/resource-path.ts';
import { controllerUid, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

type Api = Pick<ApiConnection, 'get'>;

export interface FleetQuery {
  readonly namespace?: string | undefined;
  /** Of the VMs. */
  readonly labelSelector?: string | undefined;
  /** Where not all of them are of interest; only these are kept. */
  readonly keeps?: (vm: Stored<VirtualMachine>) => boolean;
  readonly say: (line: string) => void;
}

export interface Fleet {
  readonly vms: readonly Stored<VirtualMachine>[];
  /** Their own instances, by the uid of the VM. */
  readonly vmis: ReadonlyMap<string, Stored<VirtualMachineInstance>>;
}

/** Throws as `api.get` does. */
export async function readFleet(api: Api, query: FleetQuery): Promise<Fleet> {
  const { namespace, labelSelector, keeps, say } = query;
  const path = collectionPath(VIRTUAL_MACHINES, namespace);
  // As the server tells it: it has checked it against the schema.
  const pick = (object: unknown) => {
    const vm = object as Stored<VirtualMachine>;
    return keeps === undefined || keeps(vm) ? vm : undefined;
  };
  const vms = await listAll(api, { path, ...(labelSelector !== undefined && { labelSelector }) }, pick, say);
  return { vms, vmis: await readOwned(api, VIRTUAL_MACHINE_INSTANCES, vms, query) };
}

/** The identity records of VMs, by the uid of the VM. */
export function readRecords(
  api: Api,
  vms: readonly Stored<VirtualMachine>[],
  query: FleetQuery,
): Promise<ReadonlyMap<string, Stored<VirtualMachineIdentity>>> {
  return readOwned(api, VIRTUAL_MACHINE_IDENTITIES, vms, query);
}

/** One that only has the name of a VM does not count. */
async function readOwned<T extends KubeObject>(
  api: Api,
  type: ResourceType<T>,
  vms: readonly Stored<VirtualMachine>[],
  { namespace, say }: FleetQuery,
): Promise<ReadonlyMap<string, Stored<T>>> {
  if (vms.length === 0) return new Map();
  const owners = new Set(vms.map(({ metadata }) => metadata.uid));
  const pick = (object: unknown): [string, Stored<T>] | undefined => {
    const owned = object as Stored<T>;
    const owner = controllerUid(owned);
    return owner !== undefined && owners.has(owner) ? [owner, owned] : undefined;
  };
  return new Map(await listAll(api, { path: collectionPath(type, namespace) }, pick, say));
}
