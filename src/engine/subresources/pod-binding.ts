/** POST pods/NAME/binding: assigns a pod to a node, permanently. Used by schedulers. */
import type { Call, SubresourceHandlers } from '#engine/handlers/call.ts';
import { respondStatus } from '#engine/handlers/respond.ts';
import { rewrite } from '#engine/handlers/write/rewrite.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { bindingSchema } from '#engine/registry/kinds/subresource-kinds.ts';
import { setPodCondition } from '#engine/subresources/pod-condition.ts';
import { postedKind, readPosted } from '#engine/subresources/posted-kind.ts';
import { badRequest, conflict, invalid } from '#kube/api-error.ts';
import { requiredValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

const BINDING = postedKind({ group: '', version: 'v1', kind: 'Binding' }, bindingSchema);

/** Kubernetes names this path as the resource in conflicts. */
const PODS_BINDING = { group: '', plural: 'pods/binding' };

export const podBinding: SubresourceHandlers = { create: bind };

async function bind(call: Call): Promise<ApiResponse> {
  const { name, namespace } = call.route;
  const { object, dryRun, warnings, attributes } = await readPosted(call, BINDING);
  if (object.metadata.name !== name) throw badRequest('name in URL does not match name in Binding object');
  const node = object['target'] as { kind?: string; name?: string } | undefined;
  const errors = checkTarget(node);
  if (errors.length > 0) throw invalid(BINDING.kind, name, errors);
  await call.admission.validate(attributes);
  call.admission.guard(attributes);
  const now = timestamp(call.clock.now());
  await rewrite(call, { namespace, name, dryRun, change: (pod) => assign(pod, object, node!.name!, now) });
  const status = respondStatus({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 });
  return { ...status, warnings };
}

function checkTarget({ kind = '', name = '' }: { kind?: string; name?: string } = {}): FieldError[] {
  return [
    ...(kind === '' || kind === 'Node' ? [] : [unsupportedValue('target.kind', kind, ['Node', '<empty>'])]),
    ...(name === '' ? [requiredValue('target.name')] : []),
  ];
}

type Pod = KubeObject & {
  spec: { nodeName?: string; schedulingGates?: unknown[] };
};

function assign(object: KubeObject, { metadata: requested }: KubeObject, node: string, now: string): void {
  const pod = object as Pod;
  const { metadata, spec } = pod;
  const conflictError = (why: string) => conflict(PODS_BINDING, metadata.name ?? '', why);
  if (requested.uid && requested.uid !== metadata.uid) {
    throw conflictError(
      `Precondition failed: UID in precondition: ${requested.uid}, UID in object meta: ${metadata.uid}`,
    );
  }
  if (metadata.deletionTimestamp !== undefined) {
    throw conflictError(`pod ${metadata.name} is being deleted, cannot be assigned to a host`);
  }
  if (spec.nodeName)
    throw conflictError(`pod ${metadata.name} is already assigned to node ${JSON.stringify(spec.nodeName)}`);
  if ((spec.schedulingGates?.length ?? 0) > 0)
    throw conflictError(`pod ${metadata.name} has non-empty .spec.schedulingGates`);
  spec.nodeName = node;
  if (requested.annotations !== undefined) metadata.annotations = { ...metadata.annotations, ...requested.annotations };
  setPodCondition(pod, { type: 'PodScheduled', status: 'True' }, now);
}
