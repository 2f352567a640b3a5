/** Rules that the API server itself keeps. */
import {
  KUBEVIRT_GROUP,
  LOCAL_DRIVER,
  LOCAL_PROVISIONER,
  NODE_NAME_LABEL,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { desired, type Desired } from '#operator/desired.ts';
import { POLICIES, POLICY_BINDINGS } from '#operator/kinds.ts';
import { NODE_GROUP } from '#operator/roles/node.ts';

interface Policy {
  readonly resourceRules: readonly object[];
  readonly matchConditions?: readonly object[];
  readonly variables?: readonly object[];
  readonly validations: readonly object[];
}

/** The policy, and that it holds for everything. */
function policy(name: string, { resourceRules, matchConditions = [], variables = [], validations }: Policy): Desired[] {
  // As the server fills it in, or the operator would never find it as it should be.
  const everywhere = { namespaceSelector: {}, objectSelector: {}, matchPolicy: 'Equivalent' };
  const matchConstraints = { resourceRules, ...everywhere };
  return [
    desired(
      POLICIES,
      { name },
      { spec: { failurePolicy: 'Fail', matchConstraints, matchConditions, variables, validations } },
    ),
    desired(
      POLICY_BINDINGS,
      { name },
      { spec: { policyName: name, validationActions: ['Deny'], matchResources: everywhere } },
    ),
  ];
}

const isNode = { name: 'is-a-node', expression: `'${NODE_GROUP}' in request.userInfo.groups` };
const USER_PREFIX = 'system:node:';
const user = 'request.userInfo.username';
/** '' for one whose name does not say which node it is; such a one may write nothing. */
const node = {
  name: 'node',
  expression: `${user}.startsWith('${USER_PREFIX}') ? ${user}.substring(${USER_PREFIX.length}) : ''`,
};

const nodeNameOf = (object: string) =>
  `(has(${object}.status) && has(${object}.status.nodeName) ? ${object}.status.nodeName : '')`;
/** A label or annotation of the object as it was, or `otherwise`. */
const noteOf = (notes: string, key: string, otherwise: string) =>
  `has(oldObject.metadata.${notes}) && '${key}' in oldObject.metadata.${notes} ? oldObject.metadata.${notes}['${key}'] : ${otherwise}`;

const notesOf = (notes: string, object: string) =>
  `(has(${object}.metadata.${notes}) ? ${object}.metadata.${notes} : {})`;
const unchanged = (notes: string) => `${notesOf(notes, 'object')} == ${notesOf(notes, 'oldObject')}`;
/** All but the one that stands for the data. */
const finalizersOf = (object: string) =>
  `(has(${object}.metadata.finalizers) ? ${object}.metadata.finalizers.filter(f, f != '${VOLUME_DATA_FINALIZER}') : [])`;

export const policyObjects: readonly Desired[] = [
  // The role of nodes is one for all; this is what tells them apart.
  ...policy('selfsame-node-restriction', {
    resourceRules: [
      {
        operations: ['UPDATE'],
        apiGroups: [KUBEVIRT_GROUP],
        apiVersions: ['v1'],
        resources: ['virtualmachineinstances/status'],
        scope: '*',
      },
    ],
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
    ],
  }),
  ...policy('selfsame-node-volumes', {
    resourceRules: [
      {
        operations: ['UPDATE'],
        apiGroups: [''],
        apiVersions: ['v1'],
        resources: ['persistentvolumes'],
        scope: '*',
      },
    ],
    matchConditions: [isNode],
    variables: [
      node,
      // Volumes that all nodes reach have none.
      { name: 'home', expression: noteOf('annotations', VOLUME_NODE_ANNOTATION, 'variables.node') },
    ],
    validations: [
      {
        expression: "variables.node != '' && variables.home == variables.node",
        messageExpression: "'node ' + variables.node + ' can only change volumes whose data it holds'",
        reason: 'Forbidden',
      },
      {
        expression: `has(oldObject.spec.csi) && oldObject.spec.csi.driver == '${LOCAL_DRIVER}'`,
        message: `a node can only change volumes of ${LOCAL_PROVISIONER}`,
        reason: 'Forbidden',
      },
      {
        expression: `object.spec == oldObject.spec && ${unchanged('annotations')} && ${unchanged('labels')} && ${finalizersOf('object')} == ${finalizersOf('oldObject')}`,
        message: `a node can only take off the finalizer ${VOLUME_DATA_FINALIZER} of a volume`,
        reason: 'Forbidden',
      },
    ],
  }),
];
