/** The types of the variables `request` and `namespaceObject` of admission expressions. */
import { BOOL, DYN, INT, listOf, mapOf, STRING, TIMESTAMP, type CelType, type ObjectType } from '#cel/type.ts';

export function objectType(name: string, fields: Readonly<Record<string, CelType>>): ObjectType {
  const known = new Map(Object.entries(fields));
  return { kind: 'object', name, field: (field) => known.get(field) };
}

const KIND = objectType('kubernetes.GroupVersionKind', { group: STRING, version: STRING, kind: STRING });
const RESOURCE = objectType('kubernetes.GroupVersionResource', { group: STRING, version: STRING, resource: STRING });
const USER_INFO = objectType('kubernetes.UserInfo', {
  username: STRING,
  uid: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
});

/** admission.k8s.io/v1 AdmissionRequest without uid, object and oldObject. */
export const REQUEST_TYPE = objectType('kubernetes.AdmissionRequest', {
  kind: KIND,
  resource: RESOURCE,
  subResource: STRING,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: USER_INFO,
  dryRun: BOOL,
  options: DYN,
});

const METADATA = objectType('kubernetes.NamespaceMetadata', {
  name: STRING,
  generateName: STRING,
  namespace: STRING,
  labels: mapOf(STRING, STRING),
  annotations: mapOf(STRING, STRING),
  UID: STRING,
  creationTimestamp: TIMESTAMP,
  deletionGracePeriodSeconds: INT,
  deletionTimestamp: TIMESTAMP,
  generation: INT,
  resourceVersion: STRING,
  finalizers: listOf(STRING),
});

export const NAMESPACE_TYPE = objectType('kubernetes.Namespace', {
  metadata: METADATA,
  spec: objectType('kubernetes.NamespaceSpec', { finalizers: listOf(STRING) }),
  status: objectType('kubernetes.NamespaceStatus', { phase: STRING }),
});
