/** Pod: containers that run together on one node. The node agent writes the status. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { podColumns, podIpOf } from '#engine/registry/kinds/pod/pod-columns.ts';
import { checkNewPod, checkPod, checkPodUpdate } from '#engine/registry/kinds/pod/pod-rules.ts';
import { podStatusSchema } from '#engine/registry/kinds/pod/pod-status.ts';
import { podSpec, type EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, forbiddenField } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { overrideOptions } from '#kube/schema-dsl.ts';
import { defaultPodSpec } from '#engine/registry/kinds/pod-spec/pod-spec-defaults.ts';
import { compareAmounts, isPositiveQuantity } from '#engine/registry/kinds/shared/quantities.ts';

const pod = apiType('core.v1.Pod', 'A collection of containers that run together on one node.', {
  spec: required(2, overrideOptions(podSpec, { default: {} }), 'Desired behavior of the pod.'),
  status: optional(3, podStatusSchema, 'Most recently observed status of the pod. Populated by the system. Read-only.'),
});

const DEFAULT_GRACE_SECONDS = 30;

export const pods = defineKind({
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
  shortNames: ['po'],
  categories: ['all'],
  schema: pod,
  columns: podColumns,
  status: true,
  extraSubresources: [
    { name: 'binding', kind: 'Binding', verbs: ['create'] },
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'log', kind: 'Pod', verbs: ['get'] },
  ],
  selectableFields: {
    'spec.nodeName': ({ spec }) => spec.nodeName ?? '',
    'spec.restartPolicy': ({ spec }) => spec.restartPolicy ?? '',
    'spec.schedulerName': ({ spec }) => spec.schedulerName ?? '',
    'spec.serviceAccountName': ({ spec }) => spec.serviceAccountName ?? '',
    'spec.hostNetwork': ({ spec }) => String(spec.hostNetwork ?? false),
    'status.phase': ({ status }) => status?.phase ?? '',
    'status.podIP': ({ status }) => podIpOf(status),
    'status.nominatedNodeName': ({ status }) => status?.nominatedNodeName ?? '',
  },
  defaults({ spec }) {
    defaultPod(spec);
  },
  prepareForCreate(object) {
    const { spec } = object;
    object.status = { phase: 'Pending', qosClass: isRecord(spec) ? qosClassOf(spec) : 'BestEffort' };
    if (isRecord(spec) && records(spec.schedulingGates).length > 0) {
      const message = 'Scheduling is blocked due to non-empty scheduling gates';
      object.status.conditions = [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message }];
    }
  },
  prepareForUpdate({ spec }, old) {
    keepAdmittedFields(spec, old.spec);
  },
  graceSeconds: ({ spec, status }, requested) => {
    // No node runs the pod (any more), so there is nothing to wait for.
    if (!spec.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return 0;
    const seconds = requested ?? spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    return seconds < 0 ? 1 : seconds;
  },
  validate: ({ spec }) => checkPod(spec),
  validateCreate: ({ spec }) => checkNewPod(spec),
  validateUpdate: ({ spec }, old) => [...checkPodUpdate(spec, old.spec), ...checkEphemeral(spec, old.spec)],
});

/** Ephemeral containers change only through their subresource. */
function checkEphemeral(spec: EnginePodSpec, old: EnginePodSpec): FieldError[] {
  if ((spec.ephemeralContainers?.length ?? 0) === (old.ephemeralContainers?.length ?? 0)) return [];
  return [
    forbiddenField('spec.ephemeralContainers', 'may only be changed through the ephemeralcontainers subresource'),
  ];
}

/** Sets the defaults that apply to pods but not to pod templates. */
function defaultPod(spec: EnginePodSpec | undefined): void {
  if (!isRecord(spec)) return;
  defaultPodSpec(spec);
  spec.enableServiceLinks ??= true;
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
  const containers = [...records(spec.containers), ...records(spec.initContainers)];
  for (const { resources, ports } of containers) {
    if (isRecord(resources)) defaultRequestsToLimits(resources);
    if (spec.hostNetwork !== true) continue;
    for (const port of records(ports)) {
      if (port.containerPort) port.hostPort ||= port.containerPort;
    }
  }
}

/** Sets missing requests to the limits. */
function defaultRequestsToLimits(resources: NonNullable<EnginePodSpec['resources']>): void {
  const { limits } = resources;
  if (!isRecord(limits)) return;
  resources.requests = { ...limits, ...resources.requests };
}

/** Keeps the fields that admission set, if an update omits them. */
function keepAdmittedFields(spec: EnginePodSpec | undefined, old: EnginePodSpec): void {
  if (!isRecord(spec)) return;
  if (old.priority !== undefined) spec.priority ??= old.priority;
  if (old.preemptionPolicy !== undefined) spec.preemptionPolicy ??= old.preemptionPolicy;
}

type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const COUNTED = ['cpu', 'memory'] as const;

/**
 * Returns the quality of service class. BestEffort requests nothing. Guaranteed has limits for cpu and memory in every container and equal requests. All
 * others are Burstable.
 */
function qosClassOf(spec: EnginePodSpec): QosClass {
  const containers = [...records(spec.containers), ...records(spec.initContainers)];
  let asksForAnything = false;
  let guaranteed = containers.length > 0;
  for (const { resources } of containers) {
    for (const name of COUNTED) {
      const request = amountOf(resources?.requests, name);
      const limit = amountOf(resources?.limits, name);
      if (request !== undefined || limit !== undefined) asksForAnything = true;
      // Missing requests have already been set to the limits; a zero request counts as none.
      if (limit === undefined || request === undefined || compareAmounts(request, limit) !== 0) guaranteed = false;
    }
  }
  if (!asksForAnything) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

function amountOf(amounts: unknown, name: string): string | number | undefined {
  if (!isRecord(amounts)) return undefined;
  const amount = amounts[name];
  if (typeof amount !== 'string' && typeof amount !== 'number') return undefined;
  return isPositiveQuantity(amount) ? amount : undefined;
}
