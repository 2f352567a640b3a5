/**
 * Limits nodes to their own objects: a node may write its own Node and Lease and the pods that are bound to it, and request
 * tokens of such pods. All nodes share one role, so this separates them. Kubernetes' NodeRestriction.
 *
 * Applies to all members of the group system:nodes; one whose user name is not that of a node may write nothing.
 */
import type { AdmissionAttributes, ValidatingStep } from '#engine/admission/admission.ts';
import { findMirrorPodError } from '#engine/admission/mirror-pod.ts';
import { findEventError } from '#engine/admission/node-events.ts';
import { isClaimOfNode } from '#engine/auth/node-claims.ts';
import { forbiddenLabels } from '#engine/admission/node-labels.ts';
import { refuse } from '#engine/admission/admission.ts';
import { NODE_USER_PREFIX, NODES } from '#engine/auth/groups.ts';
import type { BoundObjectReference } from '#engine/auth/service-accounts/bind-token.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import { isEventCollection } from '#engine/registry/kinds/core/event.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';
import { notFound } from '#kube/api-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

const LEASE_NAMESPACE = 'kube-node-lease';

/** The objects that the checks look up. */
interface NodeWorld {
  readonly store: Store;
  readonly registry: Pick<Registry, 'resources'>;
}

type Check = (store: Store, node: string, attributes: AdmissionAttributes) => void;

const CHECKS: ReadonlyMap<string, Check> = new Map([
  ['pods', checkPod],
  ['nodes', (_, node, attributes) => checkNode(node, attributes)],
  ['serviceaccounts', checkToken],
  ['leases.coordination.k8s.io', (_, node, attributes) => checkLease(node, attributes)],
]);

export function nodeRestriction(store: Store, registry: Pick<Registry, 'resources'>): ValidatingStep {
  return (attributes) => {
    const { user, operation, resource } = attributes;
    if (!user.groups.includes(NODES) || operation === 'CONNECT') return;
    const node = nodeOf(user);
    if (node === '') throw refuse(attributes, `could not determine node from user ${JSON.stringify(user.name)}`);
    if (isEventCollection(resource.collection)) return checkEvent(attributes, node, { store, registry });
    if (resource.collection === 'persistentvolumeclaims') return checkClaim(attributes, node, { store, registry });
    CHECKS.get(resource.collection)?.(store, node, attributes);
  };
}

/** Both the stored Event and the new one must be of an object of the node. */
function checkEvent(attributes: AdmissionAttributes, node: string, world: NodeWorld): void {
  for (const event of [attributes.oldObject, attributes.object]) {
    const error = event && findEventError(event, node, world);
    if (error !== undefined) throw refuse(attributes, error);
  }
}

function nodeOf({ name }: UserInfo): string {
  return name.startsWith(NODE_USER_PREFIX) ? name.slice(NODE_USER_PREFIX.length) : '';
}

function checkPod(store: Store, node: string, attributes: AdmissionAttributes): void {
  const { operation, subresource } = attributes;
  const itself = 'with spec.nodeName set to itself';
  switch (subresource) {
    case '':
      if (operation === 'CREATE') return checkNewPod(store, node, attributes);
      if (operation !== 'DELETE') {
        const why = `unexpected operation "${operation}", node ${quoted(node)} can only create and delete mirror pods`;
        throw refuse(attributes, why);
      }
      if (nodeNameOf(currentPod(store, attributes)) === node) return;
      throw refuse(attributes, `node ${quoted(node)} can only delete pods ${itself}`);
    case 'status':
      return checkPodStatus(node, attributes);
    case 'eviction':
      if (nodeNameOf(currentPod(store, attributes)) === node) return;
      throw refuse(attributes, `node ${node} can only evict pods ${itself}`);
    default: {
      const why = `unexpected pod subresource ${quoted(subresource)}, only 'status' and 'eviction' are allowed`;
      throw refuse(attributes, why);
    }
  }
}

function checkNewPod(store: Store, node: string, attributes: AdmissionAttributes): void {
  const error = findMirrorPodError(attributes.object!, node, () => {
    const entry = store.latest('nodes', node);
    if (entry === undefined) throw notFound({ group: '', plural: 'nodes' }, node);
    return decodeStored(entry.bytes).metadata.uid ?? '';
  });
  if (error !== undefined) throw refuse(attributes, error);
}

function checkPodStatus(node: string, attributes: AdmissionAttributes): void {
  const { operation, object, oldObject } = attributes;
  if (operation !== 'UPDATE') throw refuse(attributes, `unexpected operation "${operation}"`);
  if (nodeNameOf(oldObject) !== node) {
    const why = `node ${quoted(node)} can only update pod status for pods with spec.nodeName set to itself`;
    throw refuse(attributes, why);
  }
  if (!sameValue(object?.metadata.labels, oldObject?.metadata.labels)) {
    throw refuse(attributes, `node ${quoted(node)} cannot update labels through pod status`);
  }
  if (!sameValue(object?.metadata.annotations, oldObject?.metadata.annotations)) {
    throw refuse(attributes, `node ${quoted(node)} cannot update annotations through pod status`);
  }
  const claims = (pod: KubeObject | undefined) => fieldsOf(pod, 'status')['resourceClaimStatuses'];
  if (sameValue(claims(object), claims(oldObject))) return;
  throw refuse(attributes, `node ${quoted(node)} cannot update resource claim statues`);
}

/** Includes writes in flight. */
function currentPod(store: Store, { oldObject, namespace, name }: AdmissionAttributes): KubeObject {
  return oldObject ?? storedPod(store, namespace, name);
}

function storedPod(store: Store, namespace: string, name: string): KubeObject {
  const entry = store.latest('pods', `${namespace}/${name}`);
  if (entry === undefined) throw notFound({ group: '', plural: 'pods' }, name);
  return decodeStored(entry.bytes);
}

function checkNode(node: string, attributes: AdmissionAttributes): void {
  const { operation, object, oldObject } = attributes;
  const who = `node ${quoted(node)} is not allowed to`;
  const name = nameOf(attributes);
  if (name !== node) throw refuse(attributes, `${who} modify node ${quoted(name)}`);
  if (operation === 'DELETE') return;
  const [spec, before] = [fieldsOf(object, 'spec'), fieldsOf(oldObject, 'spec')];
  const { configSource } = spec;
  const labels = forbiddenLabels(object?.metadata.labels, oldObject?.metadata.labels).join(', ');
  if (operation === 'CREATE') {
    if (configSource !== undefined) throw refuse(attributes, `${who} create pods with a non-nil configSource`);
    if (labels !== '') throw refuse(attributes, `${who} set the following labels: ${labels}`);
    return;
  }
  if (configSource !== undefined && !sameValue(configSource, before['configSource'])) {
    throw refuse(attributes, `${who} update configSource to a new non-nil configSource`);
  }
  if (!sameValue(spec['taints'], before['taints'])) throw refuse(attributes, `${who} modify taints`);
  if (!sameValue(object?.metadata.ownerReferences, oldObject?.metadata.ownerReferences)) {
    throw refuse(attributes, `${who} modify ownerReferences`);
  }
  if (labels !== '') throw refuse(attributes, `is not allowed to modify labels: ${labels}`);
}

/** A node reports the size of a volume of its own and the progress of its resizing. */
function checkClaim(attributes: AdmissionAttributes, node: string, { store, registry }: NodeWorld): void {
  const { operation, subresource, object, oldObject } = attributes;
  if (subresource !== 'status') throw refuse(attributes, 'may only update PVC status');
  if (operation !== 'UPDATE') throw refuse(attributes, `unexpected operation "${operation}"`);
  if (!sameValue(withoutProgress(object), withoutProgress(oldObject))) {
    const why = `node ${quoted(node)} is not allowed to update fields other than status.quantity and status.conditions`;
    throw refuse(attributes, why);
  }
  const custom = registry.resources.filter(({ builtIn }) => !builtIn).map(({ collection }) => collection);
  if (isClaimOfNode(store, node, oldObject!, [...new Set(custom)])) return;
  // Kubernetes allows it; here, the allocated resources count in quotas.
  throw refuse(attributes, `node ${quoted(node)} can only update the status of claims that it uses`);
}

function withoutProgress(claim: KubeObject | undefined): unknown {
  const metadata = { ...claim?.metadata, resourceVersion: undefined, managedFields: undefined };
  const progress = {
    capacity: undefined,
    conditions: undefined,
    allocatedResources: undefined,
    allocatedResourceStatuses: undefined,
  };
  return { ...claim, metadata, status: { ...fieldsOf(claim, 'status'), ...progress } };
}

function checkLease(node: string, attributes: AdmissionAttributes): void {
  if (attributes.namespace !== LEASE_NAMESPACE) {
    throw refuse(attributes, `can only access leases in the ${quoted(LEASE_NAMESPACE)} system namespace`);
  }
  if (nameOf(attributes) === node) return;
  throw refuse(attributes, 'can only access node lease with the same name as the requesting node');
}

/** Checks that the token is bound to a pod of this node. bind-token.ts checks that the pod uses the account. */
function checkToken(store: Store, node: string, attributes: AdmissionAttributes): void {
  const { operation, subresource, namespace, object } = attributes;
  if (operation !== 'CREATE' || subresource !== 'token') return;
  const { boundObjectRef } = fieldsOf(object, 'spec');
  const { apiVersion, kind, name = '', uid = '' } = (boundObjectRef ?? {}) as BoundObjectReference;
  if (apiVersion !== 'v1' || kind !== 'Pod' || name === '') {
    throw refuse(attributes, 'node requested token not bound to a pod');
  }
  if (uid === '') throw refuse(attributes, 'node requested token with a pod binding without a uid');
  const pod = storedPod(store, namespace, name);
  if (pod.metadata.uid !== uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw refuse(attributes, why);
  }
  if (nodeNameOf(pod) === node) return;
  throw refuse(attributes, 'node requested token bound to a pod scheduled on a different node');
}

function nameOf({ name, object }: AdmissionAttributes): string {
  return name || (object?.metadata.name ?? '');
}

function nodeNameOf(pod: KubeObject | undefined): unknown {
  return fieldsOf(pod, 'spec')['nodeName'];
}

function fieldsOf(object: KubeObject | undefined, field: 'spec' | 'status'): Record<string, unknown> {
  const value = object?.[field];
  return isRecord(value) ? value : {};
}

const quoted = (text: string) => JSON.stringify(text);
