/**
 * Does what can() allows, step by step. Each write names the object that was looked at, and what it looked like; where
 * that is no more so before anything was written, the objects are read again.
 */
import {
  can,
  denialError,
  isStateVerb,
  type Answer,
  type CanWorld,
  type JsonPatchOperation,
  type Step,
  type Verb,
} from '#api/can.ts';
import type { StateWorld } from '#api/can-state.ts';
import { actingForPatch } from '#api/identity-edits.ts';
import { CREATED_BY_LABEL, KUBEVIRT_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { ApiError, conflict, isApiError, isUnfitPatch, MODIFIED } from '#kube/api-error.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType, type Stored } from '#kube/meta.ts';
import type { NodeConnections, NodeRequest } from '#subresources/node-connections.ts';
import type { AskedOptions } from '#subresources/read-options.ts';
import type { Resource } from '#subresources/route.ts';

const MAX_TRIES = 4;

export interface Asked {
  readonly resource: Resource;
  readonly verb: Verb;
  readonly namespace: string;
  readonly name: string;
  readonly options: AskedOptions;
  /** Who asks; '' where the API server does not say. */
  readonly user: string;
  /** What the node is told besides the verb: `/22/tcp`. */
  readonly below?: string;
  readonly signal: AbortSignal;
}

export interface ActParts {
  readonly client: Client;
  readonly nodes: NodeConnections;
}

/** The HTTP code of the answer; throws ApiError. */
export async function act(parts: ActParts, asked: Asked): Promise<number> {
  for (let tries = 1; ; tries++) {
    const world = await observe(parts.client, asked);
    const answer = decide(asked, world);
    if ('denied' in answer) throw denialError(answer.denied);
    const progress = { steps: 0 };
    try {
      for (const step of answer.allowed) {
        await perform(parts, asked, named(step, world, asked));
        progress.steps++;
      }
      return answer.code;
    } catch (error) {
      if (!isUnfitPatch(error)) throw error;
      if (progress.steps > 0 || tries === MAX_TRIES) throw changedMeanwhile(asked, error);
    }
  }
}

/** The node that a stream or an answer of the instance comes from; throws ApiError where there must be none. */
export async function nodeRequestOf({ client }: ActParts, asked: Asked): Promise<NodeRequest> {
  const answer = decide(asked, await observe(client, asked));
  if ('denied' in answer) throw denialError(answer.denied);
  const step = answer.allowed.find((one) => one.do === 'callNode');
  return nodeRequest(asked, step?.nodeName ?? '');
}

function decide({ resource, verb }: Asked, world: CanWorld): Answer {
  return can(verb, world, resource === VIRTUAL_MACHINES.plural ? 'virtualmachine' : 'virtualmachineinstance');
}

/** Verbs of instances that ask what their VM says. */
const LOOK_AT_VM: ReadonlySet<Verb> = new Set(['addvolume', 'removevolume']);

async function observe(client: Client, { resource, verb, namespace, name, options, signal }: Asked): Promise<CanWorld> {
  const find = async <T extends KubeObject>(type: ResourceType<T>): Promise<Stored<T> | undefined> => {
    try {
      return await client.get(type, { namespace, name }, { signal });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  };
  const looksAtVm = resource === VIRTUAL_MACHINES.plural || LOOK_AT_VM.has(verb);
  const vm = looksAtVm ? await find(VIRTUAL_MACHINES) : undefined;
  const vmi = await find(VIRTUAL_MACHINE_INSTANCES);
  const state = isStateVerb(verb) && vm !== undefined ? await observeState(client, { namespace, signal }) : undefined;
  return { name, options, ...(vm && { vm }), ...(vmi && { vmi }), ...(state && { state }) };
}

/** The claims come first: what begins to use one of them afterwards is seen in the other lists. */
async function observeState(client: Client, options: { namespace: string; signal: AbortSignal }): Promise<StateWorld> {
  const { items: claims } = await listAll(client, PERSISTENT_VOLUME_CLAIMS, options);
  const [{ items: pods }, { items: vms }, { items: vmis }] = await Promise.all([
    listAll(client, PODS, options),
    listAll(client, VIRTUAL_MACHINES, options),
    listAll(client, VIRTUAL_MACHINE_INSTANCES, options),
  ]);
  return { claims, pods, vms, vmis };
}

/** Verbs that change the devices of a VM: its history says who asked for it, and not that we did. */
const CHANGE_DEVICES: ReadonlySet<Verb> = new Set(['addvolume', 'removevolume']);

function named(step: Step, { vm }: CanWorld, { verb, user }: Asked): Step {
  if (step.do !== 'patchVm' || vm === undefined || user === '' || !CHANGE_DEVICES.has(verb)) return step;
  return { ...step, patch: [...step.patch, ...actingForPatch(vm, { by: user })] };
}

async function perform(parts: ActParts, asked: Asked, step: Step): Promise<void> {
  switch (step.do) {
    case 'patchVm':
      return await patch(parts, asked, VIRTUAL_MACHINES, step);
    case 'patchVmStatus':
      return await patch(parts, asked, VIRTUAL_MACHINES, step, 'status');
    case 'patchVmi':
      return await patch(parts, asked, VIRTUAL_MACHINE_INSTANCES, step);
    case 'patchClaim':
      return await patch(parts, { ...asked, name: step.name }, PERSISTENT_VOLUME_CLAIMS, step);
    case 'deletePod':
      return await deletePods(parts, asked, step);
    case 'createMigration':
      return await createMigration(parts, asked, step);
    case 'callNode':
      if (!asked.options.dryRun) await parts.nodes.put(nodeRequest(asked, step.nodeName));
  }
}

async function patch(
  { client }: ActParts,
  { namespace, name, options: { dryRun }, signal }: Asked,
  type: ResourceType,
  { uid, patch: operations }: { readonly uid: string; readonly patch: readonly JsonPatchOperation[] },
  subresource?: 'status',
): Promise<void> {
  const body = [{ op: 'test', path: '/metadata/uid', value: uid }, ...operations];
  const options = { dryRun, signal, ...(subresource === undefined ? {} : { subresource }) };
  await client.patch(type, { namespace, name }, { type: 'json', body }, options);
}

async function createMigration(
  { client }: ActParts,
  { namespace, options: { dryRun }, signal }: Asked,
  { generateName, spec }: Extract<Step, { do: 'createMigration' }>,
): Promise<void> {
  const type = VIRTUAL_MACHINE_INSTANCE_MIGRATIONS;
  const metadata = { namespace, generateName };
  await client.create(type, { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec }, { dryRun, signal });
}

type DeletePod = Extract<Step, { do: 'deletePod' }>;

async function deletePods(
  { client }: ActParts,
  { namespace, options: { dryRun }, signal }: Asked,
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

function nodeRequest({ verb, namespace, name, options, below = '', signal }: Asked, node: string): NodeRequest {
  const [inNamespace, named] = [encodeURIComponent(namespace), encodeURIComponent(name)];
  const { unfreezeSeconds } = options;
  const query = unfreezeSeconds === undefined ? '' : `?seconds=${unfreezeSeconds}`;
  const path = `/v1/namespaces/${inNamespace}/virtualmachineinstances/${named}/${verb}${below}${query}`;
  return { node, path, signal };
}

function changedMeanwhile({ resource, name }: Asked, cause: unknown): ApiError {
  const { code, reason, message, details } = conflict(
    { group: KUBEVIRT_GROUP, plural: resource.slice(0, -1) },
    name,
    MODIFIED,
  );
  return new ApiError(code, reason, message, { ...(details === undefined ? {} : { details }), cause });
}
