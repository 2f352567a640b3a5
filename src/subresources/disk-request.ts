/**
 * From a disk of a VM to the node that serves its content. A claim that still waits for its first user gets its volume
 * here, where it is to be filled: beside the other disks of its VM, or on a node that works.
 */
import { claimNamesOf } from '#api/claim-names.ts';
import type { DiskVerb, UPLOAD_VERB } from '#api/disk-stream.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { findState, STATE_VOLUME, stateOwnerOf } from '#api/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { ApiError, conflict, isApiError, notFound, timeout } from '#kube/api-error.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import type { Clock } from '#lib/clock.ts';
import { claimToOpen, holderOf, pickNode, uploadFault } from '#subresources/decide-disk.ts';
import type { NodeRequest } from '#subresources/node-connections.ts';

/** A volume is made within a moment, or not at all. */
const BIND_TRIES = 60;
const BIND_EVERY_MS = 500;

/** Something about claims of a namespace. */
export interface ClaimAsk {
  readonly verb: DiskVerb | typeof UPLOAD_VERB;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

export interface DiskAsk extends ClaimAsk {
  readonly verb: DiskVerb;
  readonly name: string;
  readonly volume: string;
}

export interface Parts {
  readonly client: Client;
  readonly clock: Clock;
}

/** Throws ApiError. */
export async function diskRequest(parts: Parts, ask: DiskAsk): Promise<NodeRequest> {
  const { verb, namespace, name, volume, signal } = ask;
  const vm = await find(parts, ask, VIRTUAL_MACHINES, name);
  // KubeVirt names the resource in the singular here.
  if (vm === undefined) throw notFound({ group: KUBEVIRT_GROUP, plural: 'virtualmachine' }, name);
  const vmi = await find(parts, ask, VIRTUAL_MACHINE_INSTANCES, name);
  const state = volume === STATE_VOLUME ? await stateOf(parts, ask, vm) : undefined;
  const open = claimToOpen({ verb, vm, vmi, volume, state });
  if (open instanceof ApiError) throw open;
  const claim = await boundClaim(parts, ask, vm, open.claim);
  const node = (await nodeOfClaim(parts, ask, claim)) ?? (await anyNode(parts, ask));
  const path = `/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(open.claim)}/${verb}`;
  return { node, path, signal };
}

/** Returns the claim of the VM's state; for an export only one that something was put into. No selector finds an annotation. */
async function stateOf(
  { client }: Parts,
  { verb, namespace, signal }: DiskAsk,
  vm: Stored<VirtualMachine>,
): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const { items } = await listAll(client, PERSISTENT_VOLUME_CLAIMS, { namespace, signal });
  const found = findState(items, stateOwnerOf(vm));
  const isEmpty = found?.spec.volumeName === undefined && found?.spec.dataSource === undefined;
  return verb === 'exportdisk' && isEmpty ? undefined : found;
}

/** `vm` where it is a disk of one. */
export async function boundClaim(
  parts: Parts,
  ask: ClaimAsk,
  vm: Stored<VirtualMachine> | undefined,
  name: string,
): Promise<Stored<PersistentVolumeClaim>> {
  for (let tries = 0; tries < BIND_TRIES; tries++) {
    const claim = await find(parts, ask, PERSISTENT_VOLUME_CLAIMS, name);
    if (claim === undefined) throw notFound({ group: '', plural: 'persistentvolumeclaims' }, name);
    const fault = ask.verb === 'exportdisk' ? undefined : uploadFault(claim);
    if (fault !== undefined) throw fault;
    if (claim.status?.phase === 'Bound' && claim.spec.volumeName) return claim;
    if (ask.verb === 'exportdisk') {
      const why = 'it is not bound to a volume: nothing was ever written to it';
      throw conflict({ group: '', plural: 'persistentvolumeclaims' }, name, why);
    }
    if (claim.metadata.annotations?.[SELECTED_NODE] === undefined) await select(parts, ask, vm, claim);
    await delay(parts.clock, BIND_EVERY_MS, ask);
    ask.signal.throwIfAborted();
  }
  throw timeout(`persistentvolumeclaim "${name}" is still not bound to a volume`);
}

/** As the scheduler does it for the first pod of a claim. */
async function select(
  parts: Parts,
  ask: ClaimAsk,
  vm: Stored<VirtualMachine> | undefined,
  { metadata }: Stored<PersistentVolumeClaim>,
): Promise<void> {
  const beside = vm && (await nodeOfOthers(parts, ask, vm, metadata.name));
  const node = beside ?? (await anyNode(parts, ask));
  const { namespace, name, uid } = metadata;
  const body = { metadata: { uid, annotations: { [SELECTED_NODE]: node } } };
  await parts.client.patch(
    PERSISTENT_VOLUME_CLAIMS,
    { namespace, name },
    { type: 'merge', body },
    { signal: ask.signal },
  );
}

/** Where another disk of the VM is, or is to be: it runs where all of them are. */
async function nodeOfOthers(
  parts: Parts,
  ask: ClaimAsk,
  vm: VirtualMachine,
  except: string,
): Promise<string | undefined> {
  for (const name of claimNamesOf(vm.spec.template.spec ?? {})) {
    if (name === except) continue;
    const claim = await find(parts, ask, PERSISTENT_VOLUME_CLAIMS, name);
    const node = claim && (await nodeOfClaim(parts, ask, claim));
    if (node !== undefined) return node;
  }
  return undefined;
}

/** Undefined where every node reaches it. */
export async function nodeOfClaim(
  parts: Parts,
  ask: ClaimAsk,
  { spec, metadata }: PersistentVolumeClaim,
): Promise<string | undefined> {
  if (!spec.volumeName) return metadata.annotations?.[SELECTED_NODE];
  const volume = await find(parts, ask, PERSISTENT_VOLUMES, spec.volumeName);
  if (volume === undefined) throw notFound({ group: '', plural: 'persistentvolumes' }, spec.volumeName);
  return holderOf(volume);
}

export async function anyNode({ client }: Parts, { signal }: ClaimAsk): Promise<string> {
  const { items } = await client.list(NODES, { signal });
  const node = pickNode(items);
  if (node === undefined)
    throw new ApiError(503, 'ServiceUnavailable', 'no node is ready to serve the content of disks');
  return node;
}

async function find<T extends KubeObject>(
  { client }: Parts,
  { namespace, signal }: ClaimAsk,
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
