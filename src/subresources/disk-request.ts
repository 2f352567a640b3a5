/**
 * Finds the node that serves the content of a disk of a VM. If content is written to a claim that waits for its first
 * consumer, this module selects the node for its volume: that of the other disks of the VM, or any usable node.
 */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { DiskVerb, UPLOAD_VERB } from '#api/storage/disk-stream.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { findStateClaim, STATE_VOLUME, stateOwnerOf } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { ApiError, conflict, isApiError, notFound, timeout } from '#kube/api-error.ts';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
  type PersistentVolumeClaim,
} from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import type { Clock } from '#lib/clock.ts';
import {
  canBind,
  checkUpload,
  findDiskClaim,
  findVolumeError,
  pickNode,
  pickVolumeNode,
  soleDataNodeOf,
} from '#subresources/decide-disk.ts';
import type { NodeRequest } from '#subresources/node-connections.ts';

/** A volume is provisioned within seconds; this waits up to 30 seconds. */
const BIND_TRIES = 60;
const BIND_EVERY_MS = 500;

/** A request that concerns claims of one namespace. */
export interface ClaimRequest {
  readonly verb: DiskVerb | typeof UPLOAD_VERB;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

interface DiskRequest extends ClaimRequest {
  readonly verb: DiskVerb;
  readonly name: string;
  readonly volume: string;
}

export interface DiskRequestParts {
  readonly client: Client;
  readonly clock: Clock;
}

/** Resolves to the request to the node that serves the disk; throws ApiError. */
export async function routeDiskRequest(parts: DiskRequestParts, request: DiskRequest): Promise<NodeRequest> {
  const { verb, namespace, name, volume, signal } = request;
  const vm = await find(parts, request, VIRTUAL_MACHINES, name);
  // KubeVirt names the resource in the singular here.
  if (vm === undefined) throw notFound({ group: KUBEVIRT_GROUP, plural: 'virtualmachine' }, name);
  const vmi = await find(parts, request, VIRTUAL_MACHINE_INSTANCES, name);
  const state = volume === STATE_VOLUME ? await readStateClaim(parts, request, vm) : undefined;
  const open = findDiskClaim({ verb, vm, vmi, volume, state });
  if (open instanceof ApiError) throw open;
  const claim = await bindClaim(parts, request, vm, open.claim);
  const node = (await nodeOfClaim(parts, request, claim)) ?? (await chooseNode(parts, request));
  const path = `/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(open.claim)}/${verb}`;
  return { node, path, signal };
}

/**
 * Resolves to the claim with the state of the VM; for an export only if it has content. A selector cannot find
 * annotations, so all claims are listed.
 */
async function readStateClaim(
  { client }: DiskRequestParts,
  { verb, namespace, signal }: DiskRequest,
  vm: Stored<VirtualMachine>,
): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const { items } = await listAll(client, PERSISTENT_VOLUME_CLAIMS, { namespace, signal });
  const found = findStateClaim(items, stateOwnerOf(vm));
  const isEmpty = found?.spec.volumeName === undefined && found?.spec.dataSource === undefined;
  return verb === 'exportdisk' && isEmpty ? undefined : found;
}

/** Waits until the claim is bound. `vm` is the VM that has it as a disk, if there is one. */
export async function bindClaim(
  parts: DiskRequestParts,
  request: ClaimRequest,
  vm: Stored<VirtualMachine> | undefined,
  name: string,
): Promise<Stored<PersistentVolumeClaim>> {
  for (let tries = 0; tries < BIND_TRIES; tries++) {
    const claim = await find(parts, request, PERSISTENT_VOLUME_CLAIMS, name);
    if (claim === undefined) throw notFound({ group: '', plural: 'persistentvolumeclaims' }, name);
    const refusal = request.verb === 'exportdisk' ? undefined : checkUpload(claim);
    if (refusal !== undefined) throw refusal;
    if (claim.status?.phase === 'Bound' && claim.spec.volumeName) return claim;
    if (request.verb === 'exportdisk') {
      const why = 'it is not bound to a volume: nothing was ever written to it';
      throw conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
    }
    const isSelected = claim.metadata.annotations?.[SELECTED_NODE] !== undefined;
    if (tries === 0 || !isSelected) await prepareVolume(parts, request, vm, claim);
    await delay(parts.clock, BIND_EVERY_MS, request);
    request.signal.throwIfAborted();
  }
  throw timeout(`persistentvolumeclaim "${name}" is still not bound to a volume; see "kubectl describe pvc ${name}"`);
}

/**
 * Selects the node for the volume, as the scheduler does for the first pod of a claim. Throws if no volume can ever be
 * provisioned for the claim, or bound to it.
 */
async function prepareVolume(
  parts: DiskRequestParts,
  request: ClaimRequest,
  vm: Stored<VirtualMachine> | undefined,
  claim: Stored<PersistentVolumeClaim>,
): Promise<void> {
  const { client } = parts;
  const { signal } = request;
  const { namespace, name, uid, annotations } = claim.metadata;
  const requiredNode = vm && (await nodeOfOtherDisks(parts, request, vm, name));
  const [{ items: classes }, { items: nodes }] = await Promise.all([
    client.list(STORAGE_CLASSES, { signal }),
    client.list(NODES, { signal }),
  ]);
  const why = findVolumeError({ claim, classes, nodes, requiredNode });
  if (why !== undefined) {
    // Volumes that an administrator has created need neither a class nor a provisioner.
    const { items: volumes } = await listAll(client, PERSISTENT_VOLUMES, { signal });
    const isAvailable = volumes.some((volume) => canBind(claim, volume));
    if (!isAvailable) throw conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
  }
  if (annotations?.[SELECTED_NODE] !== undefined) return;
  const chosen = why === undefined ? pickVolumeNode({ claim, classes, nodes }) : pickNode(nodes);
  const node = requiredNode ?? chosen;
  if (node === undefined) {
    const problem = `Cannot provide the volume of PersistentVolumeClaim "${name}": no node that can hold it is ready`;
    throw new ApiError(503, 'ServiceUnavailable', problem);
  }
  const body = { metadata: { uid, annotations: { [SELECTED_NODE]: node } } };
  await client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { type: 'merge', body }, { signal });
}

/** Resolves to the node of another disk of the VM: the VM can only run where all of its disks are. */
async function nodeOfOtherDisks(
  parts: DiskRequestParts,
  request: ClaimRequest,
  vm: VirtualMachine,
  except: string,
): Promise<string | undefined> {
  for (const name of claimNamesOf(vm.spec.template.spec ?? {})) {
    if (name === except) continue;
    const claim = await find(parts, request, PERSISTENT_VOLUME_CLAIMS, name);
    const node = claim && (await nodeOfClaim(parts, request, claim));
    if (node !== undefined) return node;
  }
  return undefined;
}

/** Resolves to the node that has the data of the claim, or undefined if all nodes can reach it. */
export async function nodeOfClaim(
  parts: DiskRequestParts,
  request: ClaimRequest,
  { spec, metadata }: PersistentVolumeClaim,
): Promise<string | undefined> {
  if (!spec.volumeName) return metadata.annotations?.[SELECTED_NODE];
  const volume = await find(parts, request, PERSISTENT_VOLUMES, spec.volumeName);
  if (volume === undefined) throw notFound({ group: '', plural: 'persistentvolumes' }, spec.volumeName);
  return soleDataNodeOf(volume);
}

export async function chooseNode({ client }: DiskRequestParts, { signal }: ClaimRequest): Promise<string> {
  const { items } = await client.list(NODES, { signal });
  const node = pickNode(items);
  if (node === undefined)
    throw new ApiError(503, 'ServiceUnavailable', 'Cannot serve the content of disks: no node is ready');
  return node;
}

async function find<T extends KubeObject>(
  { client }: DiskRequestParts,
  { namespace, signal }: ClaimRequest,
  type: ResourceType<T>,
  name: string,
): Promise<Stored<T> | undefined> {
  try {
    return await client.get(type, type.namespaced ? { namespace, name } : { name }, { signal });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
