/** From a claim that waits for an image to the node that takes it. */
import { claimNamesOf } from '#api/claim-names.ts';
import { isFinal } from '#api/can.ts';
import { UPLOAD_VERB } from '#api/disk-stream.ts';
import { isMarkedAsState } from '#api/snapshot-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { conflict, type ApiError } from '#kube/api-error.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { anyNode, boundClaim, nodeOfClaim, type ClaimAsk, type Parts } from '#subresources/disk-request.ts';
import type { NodeRequest } from '#subresources/node-connections.ts';

interface UploadAsk {
  readonly namespace: string;
  readonly claim: string;
  readonly signal: AbortSignal;
}

/** Throws ApiError. */
export async function uploadRequest(parts: Parts, { namespace, claim: name, signal }: UploadAsk): Promise<NodeRequest> {
  const ask: ClaimAsk = { verb: UPLOAD_VERB, namespace, signal };
  const claim = await boundClaim(parts, ask, undefined, name);
  // After it was seen that the claim waits for content: a guest that comes now waits for it, too.
  const { items } = await parts.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace, signal });
  const fault = claimFault(claim, items);
  if (fault !== undefined) throw fault;
  const node = (await nodeOfClaim(parts, ask, claim)) ?? (await anyNode(parts, ask));
  const path = `/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}/${UPLOAD_VERB}`;
  return { node, path, signal };
}

/** Why no image can come into the claim. */
export function claimFault(
  claim: Stored<PersistentVolumeClaim>,
  vmis: readonly Stored<VirtualMachineInstance>[],
): ApiError | undefined {
  const { name } = claim.metadata;
  const refused = (why: string) => conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
  if (isMarkedAsState(claim)) return refused('it keeps the state of a VM, and is no disk');
  const user = vmis.find((vmi) => !isFinal(vmi) && claimNamesOf(vmi.spec).includes(name));
  return user && refused(`it is in use by VirtualMachineInstance "${user.metadata.name}"`);
}
