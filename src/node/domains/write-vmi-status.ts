/**
 * Writes the agent's part of an instance's status. The controller writes the other part, so the whole status is written at
 * the revision that was read, and a conflict leads to another read and write. If the instance is on another node by then,
 * nothing is written.
 */
import { readInstance } from '#node/guests/read-instance.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { isInstanceOnNode } from '#node/guests/guest-objects.ts';
import { reportedStatus, type GuestFacts } from '#node/domains/vmi-report.ts';

const MAX_TRIES = 5;

/** Returns the instance as written, or undefined if it is gone or on another node. */
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
    let failure: unknown;
    try {
      return await client.update(VIRTUAL_MACHINE_INSTANCES, { ...vmi, status }, { subresource: 'status', signal });
    } catch (error) {
      failure = error;
    }
    if (isApiError(failure, 'NotFound')) return undefined;
    // The API forbids nodes to write instances of other nodes, and the cached instance may be outdated.
    const isStale = isApiError(failure, 'Conflict') || isApiError(failure, 'Forbidden');
    if (!isStale || tries >= MAX_TRIES) throw failure;
    const found = await readInstance(client, { name, namespace }, { signal });
    if (found?.metadata.uid !== uid || !isInstanceOnNode(found, facts.node.name)) return undefined;
    if (isApiError(failure, 'Forbidden') && found.metadata.resourceVersion === resourceVersion) throw failure;
    vmi = found;
  }
}
