/** The role of nodes is one for all; these rules tell them apart: each node changes only what is its own. */
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
import { NOT_QUIESCED_ANNOTATION } from '#api/snapshot-state.ts';
import { NODE_USER_PREFIX, NODES_GROUP } from '#kube/node-user.ts';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOT_GROUP } from '#kube/volume-snapshot-kinds.ts';
import type { Desired } from '#operator/desired.ts';
import { policy, whenUpdated } from '#operator/objects/policy.ts';

const isNode = { name: 'is-a-node', expression: `'${NODES_GROUP}' in request.userInfo.groups` };
const user = 'request.userInfo.username';
/** '' for one whose name does not say which node it is; such a one may write nothing. */
const node = {
  name: 'node',
  expression: `${user}.startsWith('${NODE_USER_PREFIX}') ? ${user}.substring(${NODE_USER_PREFIX.length}) : ''`,
};

const nodeNameOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.nodeName) ? ${object}.status.nodeName : '')`;
const handleOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.snapshotHandle) ? ${object}.status.snapshotHandle : '')`;
/** A field of the status is there as it was, or is not there as before. */
const sameStatus = (field: string) => {
  const has = (object: string) => `(has(${object}.status) && has(${object}.status.${field}))`;
  const same = `object.status.${field} == oldObject.status.${field}`;
  return `${has('object')} == ${has('oldObject')} && (!${has('object')} || ${same})`;
};
/** A label or annotation of the object as it was, or `otherwise`. */
const noteOf = (notes: string, key: string, otherwise: string) =>
  `has(oldObject.metadata.${notes}) && '${key}' in oldObject.metadata.${notes} ? oldObject.metadata.${notes}['${key}'] : ${otherwise}`;

const metaOf = (field: string, object: string, none: string) =>
  `(has(${object}.metadata.${field}) ? ${object}.metadata.${field} : ${none})`;
const unchanged = (field: string, none: string) =>
  `${metaOf(field, 'object', none)} == ${metaOf(field, 'oldObject', none)}`;

/** The finalizers that there are and were, and those that the request takes off. */
const finalizers = [
  { name: 'is', expression: metaOf('finalizers', 'object', '[]') },
  { name: 'was', expression: metaOf('finalizers', 'oldObject', '[]') },
  { name: 'taken', expression: 'variables.was.filter(f, !(f in variables.is))' },
];

/** Who is owned by nobody that there is gets deleted. */
const SAME_OBJECT = [
  'object.spec == oldObject.spec',
  unchanged('labels', '{}'),
  unchanged('ownerReferences', '[]'),
] as const;

/** Nothing is changed but that some of these finalizers are gone. */
const onlyTakesOff = (...names: readonly string[]) =>
  [
    ...SAME_OBJECT,
    unchanged('annotations', '{}'),
    'variables.is == variables.was.filter(f, f in variables.is)',
    `variables.taken.all(f, f in [${names.map((name) => `'${name}'`).join(', ')}])`,
  ].join(' && ');

/** Nothing is changed but that this annotation is gone. */
const onlyRemovesNote = (key: string) => {
  const [is, was] = [metaOf('annotations', 'object', '{}'), metaOf('annotations', 'oldObject', '{}')];
  return [
    ...SAME_OBJECT,
    'variables.is == variables.was',
    `!('${key}' in ${is})`,
    `${is}.all(k, k in ${was})`,
    `${was}.all(k, k == '${key}' || (k in ${is} && ${is}[k] == ${was}[k]))`,
  ].join(' && ');
};

/** Nothing is changed but that this annotation is there, and says `true`. */
const onlyAddsNote = (key: string) => {
  const [is, was] = [metaOf('annotations', 'object', '{}'), metaOf('annotations', 'oldObject', '{}')];
  return [
    ...SAME_OBJECT,
    'variables.is == variables.was',
    `${was}.all(k, k in ${is})`,
    `${is}.all(k, k == '${key}' ? ${is}[k] == 'true' : (k in ${was} && ${is}[k] == ${was}[k]))`,
  ].join(' && ');
};

export const nodePolicies: readonly Desired[] = [
  ...policy('selfsame-node-restriction', {
    resourceRules: [whenUpdated(KUBEVIRT_GROUP, 'virtualmachineinstances/status')],
    matchConditions: [isNode],
    variables: [
      node,
      { name: 'was', expression: nodeNameOf('oldObject') },
      // Set with the status, by the same controller; nobody else may.
      { name: 'label', expression: noteOf('labels', NODE_NAME_LABEL, "''") },
    ],
    validations: [
      {
        expression: "variables.node != '' && (variables.was == '' ? variables.label : variables.was) == variables.node",
        messageExpression: "'node ' + variables.node + ' can only update the status of instances that run on itself'",
        reason: 'Forbidden',
      },
      {
        expression: `${nodeNameOf('object')} == variables.was`,
        message: 'a node must not say where an instance runs',
        reason: 'Forbidden',
      },
      {
        expression: sameStatus('migrationState'),
        message: 'a node must not say how a migration goes but in status.migrationProgress',
        reason: 'Forbidden',
      },
      {
        expression: sameStatus('evacuationNodeName'),
        message: 'a node must not say which instances are to leave it',
        reason: 'Forbidden',
      },
    ],
  }),
  ...policy('selfsame-node-volumes', {
    resourceRules: [whenUpdated('', 'persistentvolumes')],
    matchConditions: [isNode],
    variables: [
      node,
      // Volumes that all nodes reach have none.
      { name: 'home', expression: noteOf('annotations', VOLUME_NODE_ANNOTATION, 'variables.node') },
      { name: 'copier', expression: noteOf('annotations', COPY_NODE_ANNOTATION, "''") },
      ...finalizers,
      // A copy that counts no more was on the node, and is gone.
      { name: 'leftover', expression: noteOf('annotations', LEFTOVER_NODE_ANNOTATION, "''") },
      {
        name: 'cleared',
        expression: `variables.leftover == variables.node && ${onlyRemovesNote(LEFTOVER_NODE_ANNOTATION)}`,
      },
    ],
    validations: [
      {
        expression: `variables.node != '' && (variables.home == variables.node || variables.cleared || (variables.copier == variables.node && !('${VOLUME_DATA_FINALIZER}' in variables.taken)))`,
        messageExpression: "'node ' + variables.node + ' can only change volumes whose data it holds'",
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
        expression: `variables.cleared || (${onlyTakesOff(VOLUME_DATA_FINALIZER, VOLUME_COPY_FINALIZER)})`,
        message: `a node can only take off the finalizers ${VOLUME_DATA_FINALIZER} and ${VOLUME_COPY_FINALIZER} of a volume, and the annotation ${LEFTOVER_NODE_ANNOTATION} that names itself`,
        reason: 'Forbidden',
      },
    ],
  }),
  ...policy('selfsame-node-snapshots', {
    resourceRules: [
      whenUpdated(VOLUME_SNAPSHOT_GROUP, VOLUME_SNAPSHOT_CONTENTS.plural, `${VOLUME_SNAPSHOT_CONTENTS.plural}/status`),
    ],
    matchConditions: [isNode],
    variables: [
      node,
      { name: 'home', expression: noteOf('annotations', SNAPSHOT_NODE_ANNOTATION, "''") },
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
        // Volumes are filled from where it points to.
        expression: `${handleOf('object')} == ${handleOf('oldObject')} || ${handleOf('object')} in ['node/' + variables.node + '/' + object.metadata.name, 'shared/' + object.metadata.name]`,
        message: 'a node can only say of a snapshot that its data is where this node puts it',
        reason: 'Forbidden',
      },
      {
        expression: `(${onlyTakesOff(SNAPSHOT_DATA_FINALIZER)}) || (${onlyAddsNote(NOT_QUIESCED_ANNOTATION)})`,
        message: `a node can only change the status of a snapshot, take off its finalizer ${SNAPSHOT_DATA_FINALIZER}, and set the annotation ${NOT_QUIESCED_ANNOTATION}`,
        reason: 'Forbidden',
      },
    ],
  }),
];
