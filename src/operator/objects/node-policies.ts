/** Policies that restrict each node to its own instances, volumes and snapshots. All nodes share one role. */
import {
  COPY_NODE_ANNOTATION,
  KUBEVIRT_GROUP,
  LEFTOVER_NODE_ANNOTATION,
  LOCAL_DRIVER,
  LOCAL_PROVISIONER,
  NODE_NAME_LABEL,
  SNAPSHOT_DATA_FINALIZER,
  SNAPSHOT_NODE_ANNOTATION,
  VOLUME_COPY_FINALIZER,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { NOT_QUIESCED_ANNOTATION } from '#api/storage/snapshot-state.ts';
import { NODE_USER_PREFIX, NODES_GROUP } from '#kube/node-user.ts';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { sameStatus, user } from '#operator/objects/cel.ts';
import { buildPolicy, matchUpdates } from '#operator/objects/policy.ts';

const isNode = { name: 'is-a-node', expression: `'${NODES_GROUP}' in request.userInfo.groups` };
/** CEL: the name of the node, or '' if the user name has none; such a user may write nothing. */
const node = {
  name: 'node',
  expression: `${user}.startsWith('${NODE_USER_PREFIX}') ? ${user}.substring(${NODE_USER_PREFIX.length}) : ''`,
};

const nodeNameOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.nodeName) ? ${object}.status.nodeName : '')`;
const handleOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.snapshotHandle) ? ${object}.status.snapshotHandle : '')`;
/** CEL: a label or annotation of the stored object, or `otherwise`. */
const storedValue = (map: 'labels' | 'annotations', key: string, otherwise: string) =>
  `has(oldObject.metadata.${map}) && '${key}' in oldObject.metadata.${map} ? oldObject.metadata.${map}['${key}'] : ${otherwise}`;

const metaOf = (field: string, object: string, none: string) =>
  `(has(${object}.metadata.${field}) ? ${object}.metadata.${field} : ${none})`;
const unchanged = (field: string, none: string) =>
  `${metaOf(field, 'object', none)} == ${metaOf(field, 'oldObject', none)}`;

/** CEL variables: the finalizers in the request, the stored ones, and those that the request removes. */
const finalizers = [
  { name: 'is', expression: metaOf('finalizers', 'object', '[]') },
  { name: 'was', expression: metaOf('finalizers', 'oldObject', '[]') },
  { name: 'taken', expression: 'variables.was.filter(f, !(f in variables.is))' },
];

/** CEL: spec, labels and owners are unchanged. An object whose owners do not exist would be deleted. */
const SAME_OBJECT = [
  'object.spec == oldObject.spec',
  unchanged('labels', '{}'),
  unchanged('ownerReferences', '[]'),
] as const;

/** CEL: the request only removes some of these finalizers. */
const onlyRemovesFinalizers = (...names: readonly string[]) =>
  [
    ...SAME_OBJECT,
    unchanged('annotations', '{}'),
    'variables.is == variables.was.filter(f, f in variables.is)',
    `variables.taken.all(f, f in [${names.map((name) => `'${name}'`).join(', ')}])`,
  ].join(' && ');

/** CEL: the request only removes this annotation. */
const onlyRemovesAnnotation = (key: string) => {
  const [is, was] = [metaOf('annotations', 'object', '{}'), metaOf('annotations', 'oldObject', '{}')];
  return [
    ...SAME_OBJECT,
    'variables.is == variables.was',
    `!('${key}' in ${is})`,
    `${is}.all(k, k in ${was})`,
    `${was}.all(k, k == '${key}' || (k in ${is} && ${is}[k] == ${was}[k]))`,
  ].join(' && ');
};

/** CEL: the request only sets this annotation, to `true`. */
const onlySetsAnnotation = (key: string) => {
  const [is, was] = [metaOf('annotations', 'object', '{}'), metaOf('annotations', 'oldObject', '{}')];
  return [
    ...SAME_OBJECT,
    'variables.is == variables.was',
    `${was}.all(k, k in ${is})`,
    `${is}.all(k, k == '${key}' ? ${is}[k] == 'true' : (k in ${was} && ${is}[k] == ${was}[k]))`,
  ].join(' && ');
};

export const nodePolicies: readonly DesiredObject[] = [
  ...buildPolicy('selfsame-node-restriction', {
    resourceRules: [matchUpdates(KUBEVIRT_GROUP, 'virtualmachineinstances/status')],
    matchConditions: [isNode],
    variables: [
      node,
      { name: 'was', expression: nodeNameOf('oldObject') },
      // The controller sets the label together with the status; no other user may.
      { name: 'label', expression: storedValue('labels', NODE_NAME_LABEL, "''") },
    ],
    validations: [
      {
        expression: "variables.node != '' && (variables.was == '' ? variables.label : variables.was) == variables.node",
        messageExpression: "'node ' + variables.node + ' can only update the status of instances that run on itself'",
        reason: 'Forbidden',
      },
      {
        expression: `${nodeNameOf('object')} == variables.was`,
        message: 'a node must not change status.nodeName of an instance',
        reason: 'Forbidden',
      },
      {
        expression: sameStatus('migrationState'),
        message: 'a node must not change status.migrationState of an instance; it reports in status.migrationProgress',
        reason: 'Forbidden',
      },
      {
        expression: sameStatus('evacuationNodeName'),
        message: 'a node must not change status.evacuationNodeName of an instance',
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-node-volumes', {
    resourceRules: [matchUpdates('', 'persistentvolumes')],
    matchConditions: [isNode],
    variables: [
      node,
      // Shared volumes do not have the annotation.
      { name: 'home', expression: storedValue('annotations', VOLUME_NODE_ANNOTATION, 'variables.node') },
      { name: 'copier', expression: storedValue('annotations', COPY_NODE_ANNOTATION, "''") },
      ...finalizers,
      // The node has removed a leftover copy.
      { name: 'leftover', expression: storedValue('annotations', LEFTOVER_NODE_ANNOTATION, "''") },
      {
        name: 'cleared',
        expression: `variables.leftover == variables.node && ${onlyRemovesAnnotation(LEFTOVER_NODE_ANNOTATION)}`,
      },
    ],
    validations: [
      {
        expression: `variables.node != '' && (variables.home == variables.node || variables.cleared || (variables.copier == variables.node && !('${VOLUME_DATA_FINALIZER}' in variables.taken)))`,
        messageExpression: "'node ' + variables.node + ' can only change volumes whose data it has'",
        reason: 'Forbidden',
      },
      {
        expression: `!('${VOLUME_COPY_FINALIZER}' in variables.taken) || variables.copier == variables.node`,
        messageExpression: "'node ' + variables.node + ' can only finish copies that it makes itself'",
        reason: 'Forbidden',
      },
      {
        expression: `has(oldObject.spec.csi) && oldObject.spec.csi.driver == '${LOCAL_DRIVER}'`,
        message: `a node can only change volumes of ${LOCAL_PROVISIONER}`,
        reason: 'Forbidden',
      },
      {
        expression: `variables.cleared || (${onlyRemovesFinalizers(VOLUME_DATA_FINALIZER, VOLUME_COPY_FINALIZER)})`,
        message: `a node can only remove the finalizers ${VOLUME_DATA_FINALIZER} and ${VOLUME_COPY_FINALIZER} from a volume, and the annotation ${LEFTOVER_NODE_ANNOTATION} with its own name`,
        reason: 'Forbidden',
      },
    ],
  }),
  ...buildPolicy('selfsame-node-snapshots', {
    resourceRules: [
      matchUpdates(VOLUME_SNAPSHOT_GROUP, VOLUME_SNAPSHOT_CONTENTS.plural, `${VOLUME_SNAPSHOT_CONTENTS.plural}/status`),
    ],
    matchConditions: [isNode],
    variables: [
      node,
      { name: 'home', expression: storedValue('annotations', SNAPSHOT_NODE_ANNOTATION, "''") },
      ...finalizers,
    ],
    validations: [
      {
        expression: "variables.node != '' && variables.home == variables.node",
        messageExpression: "'node ' + variables.node + ' can only change snapshots that it makes itself'",
        reason: 'Forbidden',
      },
      {
        expression: `oldObject.spec.driver == '${LOCAL_DRIVER}'`,
        message: `a node can only change snapshots of ${LOCAL_DRIVER}`,
        reason: 'Forbidden',
      },
      {
        // Volumes are filled from the location in the handle.
        expression: `${handleOf('object')} == ${handleOf('oldObject')} || ${handleOf('object')} in ['node/' + variables.node + '/' + object.metadata.name, 'shared/' + object.metadata.name]`,
        message: 'a node can only set a snapshotHandle that refers to its own data or to shared data',
        reason: 'Forbidden',
      },
      {
        expression: `(${onlyRemovesFinalizers(SNAPSHOT_DATA_FINALIZER)}) || (${onlySetsAnnotation(NOT_QUIESCED_ANNOTATION)})`,
        message: `a node can only change the status of a snapshot, remove its finalizer ${SNAPSHOT_DATA_FINALIZER}, and set the annotation ${NOT_QUIESCED_ANNOTATION}`,
        reason: 'Forbidden',
      },
    ],
  }),
];
