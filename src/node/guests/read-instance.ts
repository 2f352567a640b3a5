/** Reads an instance from the server. A node may read only instances that are bound to it. */
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { CallOptions, ObjectName, Reader } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';

/** Returns the instance, or undefined if it does not exist or has left this node. */
export async function readInstance(
  client: Pick<Reader, 'get'>,
  name: ObjectName,
  options?: CallOptions,
): Promise<Stored<VirtualMachineInstance> | undefined> {
  try {
    return await getIfExists(client, VIRTUAL_MACHINE_INSTANCES, name, options);
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return undefined;
    throw error;
  }
}
