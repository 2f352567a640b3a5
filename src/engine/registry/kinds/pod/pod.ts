/** Pod: containers that run together on one node. The node agent writes the status. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { podColumns, podIpOf } from '#engine/registry/kinds/pod/pod-columns.ts';
import { defaultPod, keepAdmittedFields } from '#engine/registry/kinds/pod/pod-defaults.ts';
import { checkPod, checkPodUpdate } from '#engine/registry/kinds/pod/pod-rules.ts';
import { podStatusSchema } from '#engine/registry/kinds/pod/pod-status.ts';
import { qosClassOf } from '#engine/registry/kinds/pod/qos-class.ts';
import { podSpec } from '#engine/registry/kinds/shared/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, forbiddenField } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { overrideOptions, obj } from '#kube/schema-dsl.ts';

const pod = obj({ spec: overrideOptions(podSpec, { default: {} }), status: podStatusSchema }, { required: ['spec'] });

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
  validateUpdate: ({ spec }, old) => [...checkPodUpdate(spec, old.spec), ...checkEphemeral(spec, old.spec)],
});

type PodSpec = Parameters<typeof checkPodUpdate>[0];

/** Ephemeral containers change only through their subresource. */
function checkEphemeral(spec: PodSpec, old: PodSpec): FieldError[] {
  if ((spec.ephemeralContainers?.length ?? 0) === (old.ephemeralContainers?.length ?? 0)) return [];
  return [
    forbiddenField('spec.ephemeralContainers', 'may only be changed through the ephemeralcontainers subresource'),
  ];
}
