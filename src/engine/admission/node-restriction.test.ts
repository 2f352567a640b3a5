/** Tests the writes that nodes may make: to themselves, to their pods, and tokens of their pods. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { anAdmission } from '#engine/admission/matching/testing/attributes.ts';
import { nodeRestriction } from '#engine/admission/node-restriction.ts';
import { encodeJson } from '#engine/encoding/media-types.ts';
import { leases } from '#engine/registry/kinds/lease.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/volumes/persistent-volume-claim.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { serviceAccounts } from '#engine/registry/kinds/core/service-account.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject, ObjectMeta } from '#kube/meta.ts';

const N1 = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

type Fields = Record<string, unknown>;

function aPod(nodeName: string, spec: Fields = {}, metadata: ObjectMeta = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'golden', ...metadata },
    spec: { nodeName, ...spec },
  };
}

const OWNER = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'uid-n1', controller: true };
const aMirror = (spec: Fields = {}, owners: object[] = [OWNER]) =>
  aPod('n1', spec, {
    annotations: { 'kubernetes.io/config.mirror': 'x' },
    ownerReferences: owners as ObjectMeta['ownerReferences'],
  });

const aNode = (labels: Record<string, string> = {}, spec: Fields = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n1', labels },
  spec,
});

const aClaim = (status: Fields, spec: Fields = {}, name = 'c'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'golden', uid: `uid-${name}` },
  spec,
  status,
});

type Attributes = Partial<AdmissionAttributes>;

const GADGETS = { builtIn: false, collection: 'gadgets.example.com' } as Resource;

const creates = (object: KubeObject): Attributes => ({ resource: pods, name: 'p', object });
const ofPod = (subresource: string, oldObject: KubeObject, object = oldObject): Attributes => ({
  resource: pods,
  subresource,
  name: 'p',
  operation: 'UPDATE',
  object,
  oldObject,
});
const changesNode = (object: KubeObject, oldObject = aNode(), more: Attributes = {}): Attributes => ({
  resource: nodes,
  name: 'n1',
  operation: 'UPDATE',
  object,
  oldObject,
  ...more,
});
const claims = (object: KubeObject, oldObject: KubeObject, subresource = 'status'): Attributes => ({
  resource: persistentVolumeClaims,
  name: 'c',
  operation: 'UPDATE',
  subresource,
  object,
  oldObject,
});
const grows = (name: string, volumeName = ''): Attributes => {
  const [before, next] = ['1Gi', '2Gi'].map((storage) => aClaim({ capacity: { storage } }, { volumeName }, name));
  return claims(next!, before!);
};

const token = (boundObjectRef?: object): Attributes => ({
  resource: serviceAccounts,
  subresource: 'token',
  name: 'robot',
  kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
  object: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: {}, spec: { boundObjectRef } },
});
const toPod = (name: string, uid?: string) => token({ apiVersion: 'v1', kind: 'Pod', name, uid });
const lease = (
  name: string,
  namespace = 'kube-node-lease',
  operation: AdmissionAttributes['operation'] = 'UPDATE',
) => ({
  resource: leases,
  name,
  namespace,
  operation,
});

const cases: Record<string, { attributes: Attributes; refused?: string; user?: typeof N1 }> = {
  'a user that is not a node is not restricted': {
    attributes: creates(aPod('n2')),
    user: { name: 'system:node:n1', groups: ['system:authenticated'] },
  },
  'a node user without the prefix is refused': {
    attributes: {},
    user: { ...N1, name: 'n1' },
    refused: 'configmaps "thing" is forbidden: could not determine node from user "n1"',
  },
  'a node user without a name is refused': {
    attributes: {},
    user: { ...N1, name: 'system:node:' },
    refused: 'configmaps "thing" is forbidden: could not determine node from user "system:node:"',
  },
  'other kinds are left to its role': { attributes: {} },

  'a token bound to its pod is allowed': { attributes: toPod('mine', 'uid-mine') },
  'an unbound token is refused': {
    attributes: token(),
    refused: 'serviceaccounts "robot" is forbidden: node requested token not bound to a pod',
  },
  'a token bound to a Secret is refused': {
    attributes: token({ apiVersion: 'v1', kind: 'Secret', name: 's', uid: 'u' }),
    refused: 'serviceaccounts "robot" is forbidden: node requested token not bound to a pod',
  },
  'a token bound to a node is refused': {
    attributes: token({ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'uid-n1' }),
    refused: 'serviceaccounts "robot" is forbidden: node requested token not bound to a pod',
  },
  'a token bound to a pod without UID is refused': {
    attributes: toPod('mine'),
    refused: 'serviceaccounts "robot" is forbidden: node requested token with a pod binding without a uid',
  },
  'a token bound to a missing pod is refused': { attributes: toPod('gone', 'u'), refused: 'pods "gone" not found' },
  'a token bound to a previous pod is refused': {
    attributes: toPod('mine', 'old'),
    refused:
      'serviceaccounts "robot" is forbidden: the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated',
  },
  'a token bound to a pod of another node is refused': {
    attributes: toPod('other', 'uid-other'),
    refused: 'serviceaccounts "robot" is forbidden: node requested token bound to a pod scheduled on a different node',
  },
  'a token bound to an unscheduled pod is refused': {
    attributes: toPod('waiting', 'uid-waiting'),
    refused: 'serviceaccounts "robot" is forbidden: node requested token bound to a pod scheduled on a different node',
  },

  'a mirror pod is allowed': { attributes: creates(aMirror()) },
  'a pod that is not a mirror is refused': {
    attributes: creates(aPod('n1')),
    refused:
      'pods "p" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
  },
  'a mirror pod on another node is refused': {
    attributes: creates(aMirror({ nodeName: 'n2' })),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with spec.nodeName set to itself',
  },
  'a mirror pod without owner is refused': {
    attributes: creates(aMirror({}, [])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with an owner reference set to itself',
  },
  'a mirror pod with two owners is refused': {
    attributes: creates(aMirror({}, [OWNER, OWNER])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with a single owner reference set to itself',
  },
  'a mirror pod owned by another node is refused': {
    attributes: creates(aMirror({}, [{ ...OWNER, name: 'n2' }])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with an owner reference set to itself',
  },
  'a mirror pod owned by a previous node of the same name is refused': {
    attributes: creates(aMirror({}, [{ ...OWNER, uid: 'old' }])),
    refused: 'pods "p" is forbidden: node n1 UID mismatch: expected old got uid-n1',
  },
  'a mirror pod without controller reference is refused': {
    attributes: creates(aMirror({}, [{ ...OWNER, controller: false }])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with a controller owner reference set to itself',
  },
  'a mirror pod with blockOwnerDeletion is refused': {
    attributes: creates(aMirror({}, [{ ...OWNER, blockOwnerDeletion: true }])),
    refused: 'pods "p" is forbidden: node "n1" must not set blockOwnerDeletion on an owner reference',
  },
  'a mirror pod with a service account is refused': {
    attributes: creates(aMirror({ serviceAccountName: 'robot' })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference a service account',
  },
  'a mirror pod with a Secret is refused': {
    attributes: creates(aMirror({ volumes: [{ name: 'v', secret: { secretName: 's' } }] })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference secrets',
  },
  'a mirror pod with a ConfigMap is refused': {
    attributes: creates(aMirror({ containers: [{ name: 'c', envFrom: [{ configMapRef: { name: 'm' } }] }] })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference configmaps',
  },
  'a mirror pod with a claim is refused': {
    attributes: creates(aMirror({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference persistentvolumeclaims',
  },
  'an update of a pod is refused': {
    attributes: ofPod('', aPod('n1')),
    refused: 'pods "p" is forbidden: unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
  },
  'a delete of its pod is allowed': {
    attributes: { ...ofPod('', aPod('n1')), operation: 'DELETE', object: undefined },
  },
  'a delete of a pod of another node is refused': {
    attributes: { ...ofPod('', aPod('n2')), operation: 'DELETE', object: undefined },
    refused: 'pods "p" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
  },
  'a status update of its pod is allowed': { attributes: ofPod('status', aPod('n1')) },
  'a status update of a pod of another node is refused': {
    attributes: ofPod('status', aPod('n2')),
    refused: 'pods "p" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
  },
  'labels in a status update are refused': {
    attributes: ofPod('status', aPod('n1'), aPod('n1', {}, { labels: { app: 'db' } })),
    refused: 'pods "p" is forbidden: node "n1" cannot update labels through pod status',
  },
  'an eviction of its pod is allowed': { attributes: { resource: pods, subresource: 'eviction', name: 'mine' } },
  'an eviction of a pod of another node is refused': {
    attributes: { resource: pods, subresource: 'eviction', name: 'other' },
    refused: 'pods "other" is forbidden: node n1 can only evict pods with spec.nodeName set to itself',
  },
  'a binding of a pod is refused': {
    attributes: { resource: pods, subresource: 'binding', name: 'waiting' },
    refused:
      'pods "waiting" is forbidden: unexpected pod subresource "binding", only \'status\' and \'eviction\' are allowed',
  },

  'its Node with kubelet labels is allowed': {
    attributes: {
      resource: nodes,
      name: 'n1',
      object: aNode({ 'kubernetes.io/os': 'linux', 'node.kubernetes.io/own': 'x', mine: 'y' }),
    },
  },
  'its Node with restricted labels is refused': {
    attributes: {
      resource: nodes,
      name: 'n1',
      object: aNode({ 'node-role.kubernetes.io/control-plane': '', 'a.node-restriction.kubernetes.io/b': '' }),
    },
    refused:
      'nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: a.node-restriction.kubernetes.io/b, node-role.kubernetes.io/control-plane',
  },
  'an update of its Node is allowed': { attributes: changesNode(aNode({ a: 'b' })) },
  'a status update of its Node is allowed': { attributes: changesNode(aNode(), aNode(), { subresource: 'status' }) },
  'an update of another node is refused': {
    attributes: changesNode(aNode(), aNode(), { name: 'n2' }),
    refused: 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
  },
  'a status update of another node is refused': {
    attributes: changesNode(aNode(), aNode(), { name: 'n2', subresource: 'status' }),
    refused: 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
  },
  'removing a restricted label is refused': {
    attributes: changesNode(aNode(), aNode({ 'node-restriction.kubernetes.io/zone': 'a' })),
    refused: 'nodes "n1" is forbidden: is not allowed to modify labels: node-restriction.kubernetes.io/zone',
  },
  'keeping a restricted label is allowed': {
    attributes: changesNode(
      aNode({ 'node-restriction.kubernetes.io/zone': 'a', own: 'x' }),
      aNode({ 'node-restriction.kubernetes.io/zone': 'a' }),
    ),
  },
  'a change of its taints is refused': {
    attributes: changesNode(aNode(), aNode({}, { taints: [{ key: 'a', effect: 'NoSchedule' }] })),
    refused: 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
  },

  'resize progress of a claim of its pod is allowed': { attributes: grows('c') },
  'resize progress of a claim whose volume it has is allowed': { attributes: grows('local', 'pv-n1') },
  'resize progress of a claim that is plugged into its instance is allowed': { attributes: grows('plugged') },
  ...Object.fromEntries(
    [
      ['a claim of a pod of another node', grows('c2')],
      ['a claim whose volume another node has', grows('local', 'pv-n2')],
      ['a claim that names a volume of another claim', grows('thief', 'pv-n1')],
      ['a claim that is plugged into an instance of another node', grows('plugged-2')],
      ['a claim that only the status of its instance names', grows('reported')],
      ['a claim that nothing uses', grows('unused')],
    ].map(([what, attributes]) => [
      `resize progress of ${what as string} is refused`,
      {
        attributes: attributes as Attributes,
        refused: `persistentvolumeclaims "c" is forbidden: node "n1" can only update the status of claims that it uses`,
      },
    ]),
  ),
  'a phase change of a claim is refused': {
    attributes: claims(aClaim({ phase: 'Lost' }), aClaim({ phase: 'Bound' })),
    refused:
      'persistentvolumeclaims "c" is forbidden: node "n1" is not allowed to update fields other than status.quantity and status.conditions',
  },
  'an update of a claim is refused': {
    attributes: claims(aClaim({}), aClaim({}), ''),
    refused: 'persistentvolumeclaims "c" is forbidden: may only update PVC status',
  },

  'its lease': { attributes: lease('n1') },
  'creating its lease is allowed': { attributes: lease('n1', undefined, 'CREATE') },
  'the lease of another node is refused': {
    attributes: lease('n2'),
    refused:
      'leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the requesting node',
  },
  'a lease in another namespace is refused': {
    attributes: lease('n1', 'kube-system'),
    refused:
      'leases.coordination.k8s.io "n1" is forbidden: can only access leases in the "kube-node-lease" system namespace',
  },
};

let store: Store;
before(async () => {
  store = await openMemoryStore();
  const put = (collection: string, id: string, object: KubeObject) =>
    store.put({ collection, id, expected: 0, encode: () => encodeJson(object) });
  await put('nodes', 'n1', { ...aNode(), metadata: { name: 'n1', uid: 'uid-n1' } });
  const naming = (claimName: string) => ({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }] });
  const claimed: Record<string, string> = { mine: 'c', other: 'c2', waiting: 'c2' };
  for (const [name, nodeName] of Object.entries({ mine: 'n1', other: 'n2', waiting: '' })) {
    await put('pods', `golden/${name}`, aPod(nodeName, naming(claimed[name]!), { name, uid: `uid-${name}` }));
  }
  for (const node of ['n1', 'n2']) {
    const metadata = { name: `pv-${node}`, annotations: { 'example.com/node': node } };
    const spec = { claimRef: { uid: 'uid-local' } };
    await put('persistentvolumes', `pv-${node}`, { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec });
  }
  await put('customresourcedefinitions.apiextensions.k8s.io', 'gadgets.example.com', {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: 'gadgets.example.com', annotations: { 'selfsame.io/node-label': 'example.com/node' } },
  });
  for (const [node, claimName] of Object.entries({ n1: 'plugged', n2: 'plugged-2' })) {
    await put('gadgets.example.com', `golden/${node}`, {
      ...{ apiVersion: 'example.com/v1', kind: 'Gadget', spec: naming(claimName), status: naming('reported') },
      metadata: { name: node, namespace: 'golden', labels: { 'example.com/node': node } },
    });
  }
});
after(() => store.close());

for (const [sentence, { attributes, refused, user = N1 }] of Object.entries(cases)) {
  test(sentence, () => {
    const step = () => void nodeRestriction(store, { resources: [GADGETS] })(anAdmission({ ...attributes, user }));
    if (refused === undefined) step();
    else assert.throws(step, (error) => error instanceof ApiError && (assert.equal(error.message, refused), true));
  });
}
