/** Finds the node that receives the upload of an image to a claim. */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { UPLOAD_VERB } from '#api/storage/disk-stream.ts';
import { isMarkedAsState } from '#api/storage/snapshot-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { conflict, type ApiError } from '#kube/api-error.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import {
  chooseNode,
  bindClaim,
  nodeOfClaim,
  type ClaimRequest,
  type DiskRequestParts,
} from '#subresources/disk-request.ts';
import type { NodeRequest } from '#subresources/node-connections.ts';

interface UploadRequest {
  readonly namespace: string;
  readonly claim: string;
  readonly signal: AbortSignal;
}

/** Resolves to the request to the node; throws ApiError. */
export async function routeUploadRequest(
  parts: DiskRequestParts,
  { namespace, claim: name, signal }: UploadRequest,
): Promise<NodeRequest> {
  const request: ClaimRequest = { verb: UPLOAD_VERB, namespace, signal };
  const claim = await bindClaim(parts, request, undefined, name);
  // Listed after the claim: a guest that starts later waits until the claim has its content.
  const { items } = await parts.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace, signal });
  const refusal = checkUploadTarget(claim, items);
  if (refusal !== undefined) throw refusal;
  const node = (await nodeOfClaim(parts, request, claim)) ?? (await chooseNode(parts, request));
  const path = `/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}/${UPLOAD_VERB}`;
  return { node, path, signal };
}

/** Returns why an image cannot be uploaded to the claim, or undefined if it can. */
function checkUploadTarget(
  claim: Stored<PersistentVolumeClaim>,
  vmis: readonly Stored<VirtualMachineInstance>[],
): ApiError | undefined {
  const { name } = claim.metadata;
  const refuse = (why: string) => conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
  if (isMarkedAsState(claim)) return refuse('it contains the persistent state of a VM and is not a disk');
  const user = vmis.find((vmi) => !isFinal(vmi) && claimNamesOf(vmi.spec).includes(name));
  return user && refuse(`it is in use by VirtualMachineInstance "${user.metadata.name}"`);
}
