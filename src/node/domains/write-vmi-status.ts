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
import { getIfThere } from '#node/domains/start-domain.ts';
import { isOn } from '#node/domains/instance-node.ts';
import { reportedStatus, type GuestFacts } from '#node/domains/vmi-report.ts';

const MAX_TRIES = 5;

/** The instance as it is now; undefined when it is gone, or another node's. */
export async function writeVmiStatus(
  known: Stored<VirtualMachineInstance>,
  facts: GuestFacts,
  { client, signal }: { client: Client; signal: AbortSignal },
): Promise<Stored<VirtualMachineInstance> | undefined> {
  const { uid, name, namespace } = known.metadata;
  let vmi = known;
  for (let tries = 1; ; tries++) {
    const status = reportedStatus(vmi, facts);
    if (deepEqual(status, vmi.status)) return vmi;
    const { resourceVersion } = vmi.metadata;
    let refusal: unknown;
    try {
      return await client.update(VIRTUAL_MACHINE_INSTANCES, { ...vmi, status }, { subresource: 'status', signal });
    } catch (error) {
      refusal = error;
    }
    if (isApiError(refusal, 'NotFound')) return undefined;
    // Nodes may not write what is another's, and what we know may be old.
    const isNews = isApiError(refusal, 'Conflict') || isApiError(refusal, 'Forbidden');
    if (!isNews || tries >= MAX_TRIES) throw refusal;
    const found = await getIfThere(client, VIRTUAL_MACHINE_INSTANCES, { name, namespace }, signal);
    if (found?.metadata.uid !== uid || !isOn(found, facts.node.name)) return undefined;
    if (isApiError(refusal, 'Forbidden') && found.metadata.resourceVersion === resourceVersion) throw refusal;
    vmi = found;
  }
}
