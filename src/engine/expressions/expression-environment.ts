/** The variables of policy and webhook expressions and their types, as Kubernetes declares them. */
import { withVariables, type Environment } from '#cel/environment.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { AUTHORIZER, RESOURCE_CHECK } from '#cel/kubernetes/authorizer.ts';
import { DYN, type CelType, BOOL, INT, listOf, mapOf, STRING, TIMESTAMP, type ObjectType } from '#cel/type.ts';

interface Declarations {
  /** True if there are parameters; only policies with a paramKind have them. */
  readonly params: boolean;
  /** True if there is an authorizer; messageExpression and auditAnnotations have none. */
  readonly authorizer: boolean;
  /** Type of the object if a schema is known; otherwise dyn. */
  readonly objectType?: CelType;
  readonly paramsType?: CelType;
  /** The policy's variables, as one object. */
  readonly variables?: CelType;
}

export function expressionEnvironment(declared: Declarations): Environment {
  const { params, authorizer, objectType = DYN, paramsType = DYN, variables } = declared;
  return withVariables(kubernetesEnvironment, {
    object: objectType,
    oldObject: objectType,
    namespaceObject: NAMESPACE_TYPE,
    request: REQUEST_TYPE,
    ...(params ? { params: paramsType } : {}),
    ...(authorizer ? { authorizer: AUTHORIZER, 'authorizer.requestResource': RESOURCE_CHECK } : {}),
    ...(variables === undefined ? {} : { variables }),
  });
}

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
const REQUEST_TYPE = objectType('kubernetes.AdmissionRequest', {
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

const NAMESPACE_TYPE = objectType('kubernetes.Namespace', {
  metadata: METADATA,
  spec: objectType('kubernetes.NamespaceSpec', { finalizers: listOf(STRING) }),
  status: objectType('kubernetes.NamespaceStatus', { phase: STRING }),
});
