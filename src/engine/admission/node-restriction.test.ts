/** What nodes may write: themselves, what is bound to them, and tokens of that. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { anAdmission } from '#engine/admission/matching/attributes.fixture.ts';
import { nodeRestriction } from '#engine/admission/node-restriction.ts';
import { encodeJson } from '#engine/codec.ts';
import { leases } from '#engine/registry/kinds/lease.ts';
import { nodes } from '#engine/registry/kinds/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/persistent-volume-claim.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { serviceAccounts } from '#engine/registry/kinds/service-account.ts';
import { openMemoryStore } from '#engine/store/open-store.ts';
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

const aClaim = (status: Fields, spec: Fields = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c', namespace: 'golden' },
  spec,
  status,
});

type Attributes = Partial<AdmissionAttributes>;

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

const cases: Record<string, { asked: Attributes; refused?: string; user?: typeof N1 }> = {
  'whoever is no node is not looked at': {
    asked: creates(aPod('n2')),
    user: { name: 'system:node:n1', groups: ['system:authenticated'] },
  },
  'a node that does not say which one': {
    asked: {},
    user: { ...N1, name: 'n1' },
    refused: 'configmaps "thing" is forbidden: could not determine node from user "n1"',
  },
  'a node without a name': {
    asked: {},
    user: { ...N1, name: 'system:node:' },
    refused: 'configmaps "thing" is forbidden: could not determine node from user "system:node:"',
  },
  'other kinds are for its role': { asked: {} },

  'a token of its pod': { asked: toPod('mine', 'uid-mine') },
  'a token of nothing': {
    asked: token(),
    refused: 'serviceaccounts "robot" is forbidden: node requested token not bound to a pod',
  },
  'a token of a Secret': {
    asked: token({ apiVersion: 'v1', kind: 'Secret', name: 's', uid: 'u' }),
    refused: 'serviceaccounts "robot" is forbidden: node requested token not bound to a pod',
  },
  'a token of a node': {
    asked: token({ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'uid-n1' }),
    refused: 'serviceaccounts "robot" is forbidden: node requested token not bound to a pod',
  },
  'a token of some pod of that name': {
    asked: toPod('mine'),
    refused: 'serviceaccounts "robot" is forbidden: node requested token with a pod binding without a uid',
  },
  'a token of a pod that is gone': { asked: toPod('gone', 'u'), refused: 'pods "gone" not found' },
  'a token of the pod before': {
    asked: toPod('mine', 'old'),
    refused:
      'serviceaccounts "robot" is forbidden: the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated',
  },
  'a token of a pod of another node': {
    asked: toPod('other', 'uid-other'),
    refused: 'serviceaccounts "robot" is forbidden: node requested token bound to a pod scheduled on a different node',
  },
  'a token of a pod of no node': {
    asked: toPod('waiting', 'uid-waiting'),
    refused: 'serviceaccounts "robot" is forbidden: node requested token bound to a pod scheduled on a different node',
  },

  'a mirror pod': { asked: creates(aMirror()) },
  'a pod that is no mirror': {
    asked: creates(aPod('n1')),
    refused:
      'pods "p" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
  },
  'a mirror pod elsewhere': {
    asked: creates(aMirror({ nodeName: 'n2' })),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with spec.nodeName set to itself',
  },
  'a mirror pod of nobody': {
    asked: creates(aMirror({}, [])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with an owner reference set to itself',
  },
  'a mirror pod of two owners': {
    asked: creates(aMirror({}, [OWNER, OWNER])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with a single owner reference set to itself',
  },
  'a mirror pod of another node': {
    asked: creates(aMirror({}, [{ ...OWNER, name: 'n2' }])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with an owner reference set to itself',
  },
  'a mirror pod of a node of the same name': {
    asked: creates(aMirror({}, [{ ...OWNER, uid: 'old' }])),
    refused: 'pods "p" is forbidden: node n1 UID mismatch: expected old got uid-n1',
  },
  'a mirror pod that it does not control': {
    asked: creates(aMirror({}, [{ ...OWNER, controller: false }])),
    refused: 'pods "p" is forbidden: node "n1" can only create pods with a controller owner reference set to itself',
  },
  'a mirror pod that keeps its node from going': {
    asked: creates(aMirror({}, [{ ...OWNER, blockOwnerDeletion: true }])),
    refused: 'pods "p" is forbidden: node "n1" must not set blockOwnerDeletion on an owner reference',
  },
  'a mirror pod under an account': {
    asked: creates(aMirror({ serviceAccountName: 'robot' })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference a service account',
  },
  'a mirror pod with a Secret': {
    asked: creates(aMirror({ volumes: [{ name: 'v', secret: { secretName: 's' } }] })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference secrets',
  },
  'a mirror pod with a ConfigMap': {
    asked: creates(aMirror({ containers: [{ name: 'c', envFrom: [{ configMapRef: { name: 'm' } }] }] })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference configmaps',
  },
  'a mirror pod with a claim': {
    asked: creates(aMirror({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] })),
    refused: 'pods "p" is forbidden: node "n1" can not create pods that reference persistentvolumeclaims',
  },
  'a change of a pod': {
    asked: ofPod('', aPod('n1')),
    refused: 'pods "p" is forbidden: unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
  },
  'the end of its pod': { asked: { ...ofPod('', aPod('n1')), operation: 'DELETE', object: undefined } },
  'the end of a pod of another': {
    asked: { ...ofPod('', aPod('n2')), operation: 'DELETE', object: undefined },
    refused: 'pods "p" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
  },
  'the status of its pod': { asked: ofPod('status', aPod('n1')) },
  'the status of a pod of another': {
    asked: ofPod('status', aPod('n2')),
    refused: 'pods "p" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
  },
  'labels by way of the status': {
    asked: ofPod('status', aPod('n1'), aPod('n1', {}, { labels: { app: 'db' } })),
    refused: 'pods "p" is forbidden: node "n1" cannot update labels through pod status',
  },
  'the eviction of its pod': { asked: { resource: pods, subresource: 'eviction', name: 'mine' } },
  'the eviction of a pod of another': {
    asked: { resource: pods, subresource: 'eviction', name: 'other' },
    refused: 'pods "other" is forbidden: node n1 can only evict pods with spec.nodeName set to itself',
  },
  'a binding of a pod': {
    asked: { resource: pods, subresource: 'binding', name: 'waiting' },
    refused:
      'pods "waiting" is forbidden: unexpected pod subresource "binding", only \'status\' and \'eviction\' are allowed',
  },

  'itself, with the labels of a kubelet': {
    asked: {
      resource: nodes,
      name: 'n1',
      object: aNode({ 'kubernetes.io/os': 'linux', 'node.kubernetes.io/own': 'x', mine: 'y' }),
    },
  },
  'itself, with labels of others': {
    asked: {
      resource: nodes,
      name: 'n1',
      object: aNode({ 'node-role.kubernetes.io/control-plane': '', 'a.node-restriction.kubernetes.io/b': '' }),
    },
    refused:
      'nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: a.node-restriction.kubernetes.io/b, node-role.kubernetes.io/control-plane',
  },
  'itself, changed': { asked: changesNode(aNode({ a: 'b' })) },
  'its status': { asked: changesNode(aNode(), aNode(), { subresource: 'status' }) },
  'another node': {
    asked: changesNode(aNode(), aNode(), { name: 'n2' }),
    refused: 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
  },
  'the status of another node': {
    asked: changesNode(aNode(), aNode(), { name: 'n2', subresource: 'status' }),
    refused: 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
  },
  'a label of others, taken away': {
    asked: changesNode(aNode(), aNode({ 'node-restriction.kubernetes.io/zone': 'a' })),
    refused: 'nodes "n1" is forbidden: is not allowed to modify labels: node-restriction.kubernetes.io/zone',
  },
  'a label of others, left as it is': {
    asked: changesNode(
      aNode({ 'node-restriction.kubernetes.io/zone': 'a', own: 'x' }),
      aNode({ 'node-restriction.kubernetes.io/zone': 'a' }),
    ),
  },
  'its taints': {
    asked: changesNode(aNode(), aNode({}, { taints: [{ key: 'a', effect: 'NoSchedule' }] })),
    refused: 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
  },

  'how its volumes grow': {
    asked: claims(aClaim({ capacity: { storage: '2Gi' } }), aClaim({ capacity: { storage: '1Gi' } })),
  },
  'the phase of a claim': {
    asked: claims(aClaim({ phase: 'Lost' }), aClaim({ phase: 'Bound' })),
    refused:
      'persistentvolumeclaims "c" is forbidden: node "n1" is not allowed to update fields other than status.quantity and status.conditions',
  },
  'a claim itself': {
    asked: claims(aClaim({}), aClaim({}), ''),
    refused: 'persistentvolumeclaims "c" is forbidden: may only update PVC status',
  },

  'its lease': { asked: lease('n1') },
  'its lease, made': { asked: lease('n1', undefined, 'CREATE') },
  'the lease of another node': {
    asked: lease('n2'),
    refused:
      'leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the requesting node',
  },
  'a lease elsewhere': {
    asked: lease('n1', 'kube-system'),
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
  for (const [name, nodeName] of Object.entries({ mine: 'n1', other: 'n2', waiting: '' })) {
    await put('pods', `golden/${name}`, aPod(nodeName, {}, { name, uid: `uid-${name}` }));
  }
});
after(() => store.close());

for (const [sentence, { asked, refused, user = N1 }] of Object.entries(cases)) {
  test(sentence, () => {
    const step = () => void nodeRestriction(store)(anAdmission({ ...asked, user }));
    if (refused === undefined) step();
    else assert.throws(step, (error) => error instanceof ApiError && (assert.equal(error.message, refused), true));
  });
}
