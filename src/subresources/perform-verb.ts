/**
 * Performs the steps that decideVerb allows. Each write tests that the object is still the one that was read; if it is not,
 * and nothing was written yet, the objects are read again.
 */
import { decideVerb } from '#api/verbs/decide-verb.ts';
import { actingForPatch } from '#api/identity/identity-edits.ts';
import { CREATED_BY_LABEL, KUBEVIRT_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { ApiError, conflict, isApiError, isInapplicablePatch, MODIFIED } from '#kube/api-error.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import type { NodeConnections, NodeRequest } from '#subresources/node-connections.ts';
import type { VerbRequestOptions } from '#subresources/read-options.ts';
import type { VmResource } from '#subresources/route.ts';
import {
  refusalToApiError,
  isStateVerb,
  type VerbDecision,
  type VerbWorld,
  type JsonPatchOperation,
  type VerbStep,
  type SubresourceVerb,
  type StateWorld,
} from '#api/verbs/verb.ts';

const MAX_TRIES = 4;

export interface VerbRequest {
  readonly resource: VmResource;
  readonly verb: SubresourceVerb;
  readonly namespace: string;
  readonly name: string;
  readonly options: VerbRequestOptions;
  /** The name of the user; '' if the API server does not send it. */
  readonly user: string;
  /** The part of the path to the node after the verb: `/22/tcp`. */
  readonly pathSuffix?: string;
  readonly signal: AbortSignal;
}

interface VerbParts {
  readonly client: Client;
  readonly nodes: NodeConnections;
}

/** Performs a verb and resolves to the HTTP code of the response; throws ApiError. */
export async function performVerb(parts: VerbParts, request: VerbRequest): Promise<number> {
  for (let tries = 1; ; tries++) {
    const world = await observe(parts.client, request);
    const decision = decide(request, world);
    if ('denied' in decision) throw refusalToApiError(decision.denied);
    const progress = { steps: 0 };
    try {
      for (const step of decision.allowed) {
        await performStep(parts, request, attributeToUser(step, world, request));
        progress.steps++;
      }
      return decision.code;
    } catch (error) {
      if (!isInapplicablePatch(error)) throw error;
      if (progress.steps > 0 || tries === MAX_TRIES) throw conflictError(request, error);
    }
  }
}

/**
 * Resolves to the request to the node that serves a stream or a read of the guest; throws ApiError if it is refused.
 */
export async function findNodeRequest({ client }: VerbParts, request: VerbRequest): Promise<NodeRequest> {
  const decision = decide(request, await observe(client, request));
  if ('denied' in decision) throw refusalToApiError(decision.denied);
  const step = decision.allowed.find((one) => one.do === 'callNode');
  return buildNodeRequest(request, step?.nodeName ?? '');
}

function decide({ resource, verb }: VerbRequest, world: VerbWorld): VerbDecision {
  return decideVerb(verb, world, resource === VIRTUAL_MACHINES.plural ? 'virtualmachine' : 'virtualmachineinstance');
}

/** Verbs of instances that depend on the VM. */
const VMI_VERBS_READING_VM: ReadonlySet<SubresourceVerb> = new Set(['addvolume', 'removevolume']);

async function observe(
  client: Client,
  { resource, verb, namespace, name, options, signal }: VerbRequest,
): Promise<VerbWorld> {
  const find = async <T extends KubeObject>(type: ResourceType<T>): Promise<Stored<T> | undefined> => {
    try {
      return await client.get(type, { namespace, name }, { signal });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  };
  const needsVm = resource === VIRTUAL_MACHINES.plural || VMI_VERBS_READING_VM.has(verb);
  const vm = needsVm ? await find(VIRTUAL_MACHINES) : undefined;
  const vmi = await find(VIRTUAL_MACHINE_INSTANCES);
  const state = isStateVerb(verb) && vm !== undefined ? await observeState(client, { namespace, signal }) : undefined;
  return { name, options, ...(vm && { vm }), ...(vmi && { vmi }), ...(state && { state }) };
}

/** Lists the claims first, so that the later lists show everything that begins to use one of them. */
async function observeState(client: Client, options: { namespace: string; signal: AbortSignal }): Promise<StateWorld> {
  const { items: claims } = await listAll(client, PERSISTENT_VOLUME_CLAIMS, options);
  const [{ items: pods }, { items: vms }, { items: vmis }] = await Promise.all([
    listAll(client, PODS, options),
    listAll(client, VIRTUAL_MACHINES, options),
    listAll(client, VIRTUAL_MACHINE_INSTANCES, options),
  ]);
  return { claims, pods, vms, vmis };
}

/** Verbs that change the devices of a VM; its history names the user, not this server. */
const CHANGE_DEVICES: ReadonlySet<SubresourceVerb> = new Set(['addvolume', 'removevolume']);

/** Adds the user to a patch of the VM, if the verb changes its devices. */
function attributeToUser(step: VerbStep, { vm }: VerbWorld, { verb, user }: VerbRequest): VerbStep {
  if (step.do !== 'patchVm' || vm === undefined || user === '' || !CHANGE_DEVICES.has(verb)) return step;
  return { ...step, patch: [...step.patch, ...actingForPatch(vm, { by: user })] };
}

async function performStep(parts: VerbParts, request: VerbRequest, step: VerbStep): Promise<void> {
  switch (step.do) {
    case 'patchVm':
      return await patch(parts, request, VIRTUAL_MACHINES, step);
    case 'patchVmStatus':
      return await patch(parts, request, VIRTUAL_MACHINES, step, 'status');
    case 'patchVmi':
      return await patch(parts, request, VIRTUAL_MACHINE_INSTANCES, step);
    case 'patchClaim':
      return await patch(parts, { ...request, name: step.name }, PERSISTENT_VOLUME_CLAIMS, step);
    case 'deletePod':
      return await deletePods(parts, request, step);
    case 'createMigration':
      return await createMigration(parts, request, step);
    case 'callNode':
      if (!request.options.dryRun) await parts.nodes.put(buildNodeRequest(request, step.nodeName));
  }
}

async function patch(
  { client }: VerbParts,
  { namespace, name, options: { dryRun }, signal }: VerbRequest,
  type: ResourceType,
  { uid, patch: operations }: { readonly uid: string; readonly patch: readonly JsonPatchOperation[] },
  subresource?: 'status',
): Promise<void> {
  const body = [{ op: 'test', path: '/metadata/uid', value: uid }, ...operations];
  const options = { dryRun, signal, ...(subresource === undefined ? {} : { subresource }) };
  await client.patch(type, { namespace, name }, { type: 'json', body }, options);
}

async function createMigration(
  { client }: VerbParts,
  { namespace, options: { dryRun }, signal }: VerbRequest,
  { generateName, spec }: Extract<VerbStep, { do: 'createMigration' }>,
): Promise<void> {
  const type = VIRTUAL_MACHINE_INSTANCE_MIGRATIONS;
  const metadata = { namespace, generateName };
  await client.create(type, { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec }, { dryRun, signal });
}

type DeletePod = Extract<VerbStep, { do: 'deletePod' }>;

async function deletePods(
  { client }: VerbParts,
  { namespace, options: { dryRun }, signal }: VerbRequest,
  { vmiUid, gracePeriodSeconds }: DeletePod,
): Promise<void> {
  const { items } = await client.list(PODS, { namespace, labelSelector: `${CREATED_BY_LABEL}=${vmiUid}`, signal });
  for (const { metadata, status } of items) {
    if (status?.phase !== 'Running') continue;
    try {
      await client.delete(
        PODS,
        { namespace, name: metadata.name },
        { uid: metadata.uid, gracePeriodSeconds, dryRun, signal },
      );
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}

function buildNodeRequest(
  { verb, namespace, name, options, pathSuffix = '', signal }: VerbRequest,
  node: string,
): NodeRequest {
  const [encodedNamespace, encodedName] = [encodeURIComponent(namespace), encodeURIComponent(name)];
  const { unfreezeSeconds } = options;
  const query = unfreezeSeconds === undefined ? '' : `?seconds=${unfreezeSeconds}`;
  const path = `/v1/namespaces/${encodedNamespace}/virtualmachineinstances/${encodedName}/${verb}${pathSuffix}${query}`;
  return { node, path, signal };
}

function conflictError({ resource, name }: VerbRequest, cause: unknown): ApiError {
  const { code, reason, message, details } = conflict(
    { group: KUBEVIRT_GROUP, plural: resource.slice(0, -1) },
    name,
    MODIFIED,
  );
  return new ApiError(code, reason, message, { ...(details === undefined ? {} : { details }), cause });
}
