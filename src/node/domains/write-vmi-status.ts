/**
 * Our part of an instance's status, written with the whole of it at the revision that was read: two write it, each keeps what
 * the other said. Where the other one was faster, we read and try again; and where the instance has gone to another node
 * meanwhile, we have nothing to say of it any more.
 */
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { isOn } from '#node/domains/instance-node.ts';
import { reportedStatus, type GuestFacts } from '#node/domains/vmi-report.ts';

const MAX_TRIES = 5;

/** The instance as it is now; undefined when it is gone, or another node's. */
export async function writeVmiStatus(
  known: Stored<VirtualMachineInstance>,
  facts: GuestFacts,
  { client, signal }: { client: Pick<Client, 'get' | 'update'>; signal: AbortSignal },
): Promise<Stored<VirtualMachineInstance> | undefined> {
  const { uid, name, namespace } = known.metadata;
  let vmi = known;
  for (let tries = 1; ; tries++) {
    const status = reportedStatus(vmi, facts);
    if (deepEqual(status, vmi.status)) return vmi;
    try {
      return await client.update(VIRTUAL_MACHINE_INSTANCES, { ...vmi, status }, { subresource: 'status', signal });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      // A node may not write what is another's.
      const isNews = isApiError(error, 'Conflict') || isApiError(error, 'Forbidden');
      if (!isNews || tries >= MAX_TRIES) throw error;
    }
    try {
      vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, { name, namespace }, { signal });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
    if (vmi.metadata.uid !== uid || !isOn(vmi, facts.node.name)) return undefined;
  }
}
