/** The types of the kinds that exist only as the bodies of subresources: Binding, Eviction, TokenRequest and Scale. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { deleteOptionsSchema } from '#engine/registry/kinds/meta/delete-options.ts';
import { objectReference } from '#engine/registry/kinds/core/references.ts';
import { int32, int64, list, overrideOptions, str, time } from '#kube/schema-dsl.ts';

export const bindingSchema = apiType('core.v1.Binding', 'Assigns a pod to a node.', {
  target: required(2, objectReference, 'Node that the pod is assigned to.'),
});

export const evictionSchema = apiType('policy.v1.Eviction', 'Evicts a pod from its node, as far as budgets allow.', {
  deleteOptions: pointer(2, deleteOptionsSchema, 'Options of the deletion of the pod.'),
});

const boundObjectReference = apiType('authentication.v1.BoundObjectReference', 'An object that a token is bound to.', {
  kind: optional(1, str(), 'Kind of the object: Pod, Secret or Node.'),
  apiVersion: optional(2, str(), 'API version of the object.'),
  name: optional(3, str(), 'Name of the object.'),
  uid: optional(4, str(), 'UID of the object.'),
});

export const tokenRequestSpec = apiType('authentication.v1.TokenRequestSpec', 'The properties of a token.', {
  audiences: optional(1, list(str(), { atomic: true }), 'Intended audiences of the token.', { omitEmpty: false }),
  expirationSeconds: pointer(4, int64({ default: 3600 }), 'Requested lifetime of the token.', { omitEmpty: false }),
  boundObjectRef: pointer(3, boundObjectReference, 'Object without which the token is invalid.', { omitEmpty: false }),
});

const tokenRequestStatus = apiType('authentication.v1.TokenRequestStatus', 'A token.', {
  token: optional(1, str(), 'The token.', { omitEmpty: false }),
  expirationTimestamp: optional(2, time(), 'Time when the token expires.', { omitEmpty: false }),
});

export const tokenRequestSchema = apiType('authentication.v1.TokenRequest', 'Requests a token of a service account.', {
  spec: optional(2, overrideOptions(tokenRequestSpec, { default: {} }), 'Properties of the token.'),
  status: optional(3, tokenRequestStatus, 'The token. Filled in by the server.'),
});

const scaleSpec = apiType('autoscaling.v1.ScaleSpec', 'The desired scale of an object.', {
  replicas: optional(1, int32(), 'Desired number of replicas.'),
});

const scaleStatus = apiType('autoscaling.v1.ScaleStatus', 'The current scale of an object.', {
  replicas: required(1, int32(), 'Observed number of replicas.'),
  selector: optional(2, str(), 'Label selector of the replicas.'),
});

export const scaleSchema = apiType('autoscaling.v1.Scale', 'The scale of an object.', {
  spec: optional(2, scaleSpec, 'Desired scale.'),
  status: optional(3, scaleStatus, 'Current scale. Populated by the system. Read-only.'),
});
