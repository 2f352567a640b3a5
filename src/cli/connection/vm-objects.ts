/** Reads the objects that belong to one VM: the VM, its identity record, its instance, the settings, its claims. */
import { configurationOf, type Configuration } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS, type GuestNetwork } from '#api/network/guest-network.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import { objectPath } from '#client/resource-path.ts';
import { ApiError, isApiError } from '#kube/api-error.ts';
import { controllerUid, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';

type Api = Pick<ApiConnection, 'get' | 'namespace'>;

/** Reads an object. Its type is not checked, because the server validates objects. Throws like `api.get`. */
export async function readObject<T extends KubeObject>(
  api: Api,
  type: ResourceType<T>,
  name: string,
  namespace = api.namespace,
): Promise<Stored<T>> {
  return (await api.get(objectPath(type, { namespace, name }))) as Stored<T>;
}

/** Returns undefined if there is none. */
export async function findObject<T extends KubeObject>(
  api: Api,
  type: ResourceType<T>,
  name: string,
): Promise<Stored<T> | undefined> {
  try {
    return await readObject(api, type, name);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

export async function readVm(api: Api, name: string): Promise<Stored<VirtualMachine>> {
  if (name === '') throw new UsageError('expected the name of a VM');
  return await explainFailure(`Cannot read VM ${name}: `, readObject(api, VIRTUAL_MACHINES, name));
}

/** Returns the identity record of a VM. A record of an earlier VM with the same name does not count. */
export async function findRecord(
  api: Api,
  { metadata }: Stored<VirtualMachine>,
): Promise<Stored<VirtualMachineIdentity> | undefined> {
  const record = await findObject(api, VIRTUAL_MACHINE_IDENTITIES, metadata.name);
  return record !== undefined && controllerUid(record) === metadata.uid ? record : undefined;
}

/** Returns the instance of a VM. An instance that only has the same name does not count. */
export async function findInstance(
  api: Api,
  { metadata }: Stored<VirtualMachine>,
): Promise<Stored<VirtualMachineInstance> | undefined> {
  const vmi = await findObject(api, VIRTUAL_MACHINE_INSTANCES, metadata.name);
  return vmi !== undefined && controllerUid(vmi) === metadata.uid ? vmi : undefined;
}

/** Returns the default network; undefined if there is none, or if the user may not read it. */
export async function findGuestNetwork(api: Api): Promise<Stored<GuestNetwork> | undefined> {
  try {
    return await findObject(api, GUEST_NETWORKS, DEFAULT_NETWORK);
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return undefined;
    throw error;
  }
}

/** Reads the settings. If the user may not read them, reports this and returns the defaults. */
export async function readConfiguration(api: Api, report: (line: string) => void): Promise<Configuration> {
  try {
    return configurationOf(await readObject(api, KUBEVIRTS, KUBEVIRT_NAME, SYSTEM_NAMESPACE));
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 403 && error.code !== 404)) throw error;
    if (error.code === 403) report(`Warning: cannot read the settings, using defaults: ${error.message}`);
    return configurationOf(undefined);
  }
}
