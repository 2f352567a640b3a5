/** Node: a machine that runs pods. */
import { apiType, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { nodeConfigSource, nodeStatusSchema } from '#engine/registry/kinds/core/node-status.ts';
import { age, NONE_TEXT, UNKNOWN_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { checkLabelKey, checkLabelValue } from '#engine/registry/kinds/shared/formats.ts';
import { canonicalAmounts, checkAmount } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { taint } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import { findCondition } from '#kube/conditions.ts';
import { duplicateValue, type FieldError, forbiddenField } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { bool, type Infer, list, overrideOptions, str } from '#kube/schema-dsl.ts';

const nodeSpec = apiType('core.v1.NodeSpec', 'Desired behavior of a node.', {
  podCIDR: optional(1, str(), 'IP range of the pods on the node.'),
  podCIDRs: optional(7, list(str(), { set: true, merge: true }), 'All IP ranges of the pods on the node.'),
  providerID: optional(3, str(), 'ID of the node that its cloud provider assigned.'),
  unschedulable: optional(4, bool(), 'Whether new pods cannot be scheduled onto the node.'),
  taints: optional(5, list(taint, { atomic: true }), 'Taints of the node.'),
  configSource: pointer(6, nodeConfigSource, 'Deprecated.'),
  externalID: optional(2, str(), 'Deprecated.'),
});

const node = apiType('core.v1.Node', 'A machine that runs pods.', {
  spec: optional(2, overrideOptions(nodeSpec, { default: {} }), 'Desired behavior of the node.'),
  status: optional(
    3,
    overrideOptions(nodeStatusSchema, { default: {} }),
    'Most recently observed status of the node. Populated by the system. Read-only.',
  ),
});

type Node = KubeObject & Infer<typeof node>;

export const nodes = defineKind({
  kind: 'Node',
  plural: 'nodes',
  namespaced: false,
  shortNames: ['no'],
  schema: node,
  columns: [
    { name: 'Status', value: stateOf },
    { name: 'Roles', value: rolesOf },
    age,
    { name: 'Version', value: ({ status }) => status?.nodeInfo?.kubeletVersion ?? '' },
    { name: 'Internal-IP', priority: 1, value: (object) => addressOf(object, 'InternalIP') },
    { name: 'External-IP', priority: 1, value: (object) => addressOf(object, 'ExternalIP') },
    { name: 'OS-Image', priority: 1, value: ({ status }) => status?.nodeInfo?.osImage || UNKNOWN_TEXT },
    { name: 'Kernel-Version', priority: 1, value: ({ status }) => status?.nodeInfo?.kernelVersion || UNKNOWN_TEXT },
    {
      name: 'Container-Runtime',
      priority: 1,
      value: ({ status }) => status?.nodeInfo?.containerRuntimeVersion || UNKNOWN_TEXT,
    },
  ],
  status: true,
  keepsSentStatus: true,
  selectableFields: { 'spec.unschedulable': ({ spec }) => String(spec?.unschedulable ?? false) },
  defaults({ status }) {
    if (!isRecord(status)) return;
    canonicalAmounts(status.capacity);
    canonicalAmounts(status.allocatable);
    if (isRecord(status.capacity)) status.allocatable ??= { ...status.capacity };
  },
  validate: ({ spec, status }) => [
    ...checkTaints(spec?.taints ?? []),
    ...checkAmounts('status.capacity', status?.capacity),
    ...checkAmounts('status.allocatable', status?.allocatable),
  ],
  validateUpdate: ({ spec }, old) => checkNodeUpdate(spec ?? {}, old.spec ?? {}),
});

function stateOf({ spec, status }: Node): string {
  const ready = findCondition(status?.conditions, 'Ready')?.status;
  const state = ready === undefined ? 'Unknown' : ready === 'True' ? 'Ready' : 'NotReady';
  return spec?.unschedulable === true ? `${state},SchedulingDisabled` : state;
}

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

function rolesOf({ metadata }: Node): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (key.startsWith(ROLE_PREFIX)) roles.add(key.slice(ROLE_PREFIX.length));
    else if (key === ROLE_LABEL) roles.add(value);
  }
  roles.delete('');
  return roles.size === 0 ? NONE_TEXT : [...roles].sort().join(',');
}

function addressOf({ status }: Node, type: string): string {
  return status?.addresses?.find((address) => address.type === type)?.address ?? NONE_TEXT;
}

function checkAmounts(field: string, amounts: Readonly<Record<string, string | number>> | undefined): FieldError[] {
  return Object.entries(amounts ?? {}).flatMap(([name, amount]) => checkAmount(`${field}.${name}`, amount));
}

type Taint = Infer<typeof taint>;

/** The path is Kubernetes' own, although taints are in the spec. */
function checkTaints(taints: readonly Taint[]): FieldError[] {
  const seen = new Set<string>();
  return taints.flatMap((one, i) => {
    const { key, value = '', effect } = one;
    const field = `metadata.taints[${i}]`;
    const errors = [...checkLabelKey(`${field}.key`, key), ...checkLabelValue(`${field}.value`, value)];
    const pair = JSON.stringify([key, effect]);
    if (!seen.has(pair)) {
      seen.add(pair);
      return errors;
    }
    const { message, ...error } = duplicateValue(field, one);
    return [...errors, { ...error, message: `${message}: taints must be unique by key and effect pair` }];
  });
}

function checkNodeUpdate(spec: Infer<typeof nodeSpec>, old: Infer<typeof nodeSpec>): FieldError[] {
  const errors: FieldError[] = [];
  if ((old.podCIDRs?.length ?? 0) > 0 && !sameValue(spec.podCIDRs, old.podCIDRs)) {
    errors.push(forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if (old.providerID && spec.providerID !== old.providerID) {
    errors.push(forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid'));
  }
  if ((spec.externalID ?? '') !== (old.externalID ?? '')) {
    errors.push(forbiddenField('spec.externalID', 'may not be updated'));
  }
  return errors;
}
