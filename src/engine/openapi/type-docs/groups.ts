/** Documentation of the kinds of the smaller API groups. */
import { conditionDoc } from '#engine/openapi/type-docs/core.ts';
import type { PackageDocs } from '#engine/openapi/type-docs/type-doc.ts';

export const appsDocs: PackageDocs = {
  ControllerRevision: {
    '': 'An immutable snapshot of state data, which controllers use for updates and rollbacks.',
    data: 'Serialized state.',
    revision: 'Revision number of the state.',
  },
};

export const batchDocs: PackageDocs = {
  Job: {
    '': 'A job runs pods until a number of them complete successfully.',
    spec: ['Desired behavior of the job.', 'JobSpec'],
    status: ['Current status of the job. Populated by the system. Read-only.', 'JobStatus'],
  },
  JobSpec: {
    '': 'Desired behavior of a job.',
    activeDeadlineSeconds: 'Seconds after its start when the job is terminated.',
    backoffLimit: 'Number of retries before the job is marked as failed.',
    backoffLimitPerIndex: 'Number of retries within an index before the index is marked as failed.',
    completionMode: 'How pod completions are tracked: NonIndexed or Indexed.',
    completions: 'Number of pods that must complete successfully.',
    managedBy: 'Name of the controller that manages the job.',
    manualSelector: 'Whether the user sets the pod labels and the selector.',
    maxFailedIndexes: 'Number of failed indexes before the job is marked as failed.',
    parallelism: 'Maximum number of pods to run at a time.',
    podFailurePolicy: ['How failed pods are handled.', 'PodFailurePolicy'],
    podReplacementPolicy: 'When pods are replaced: TerminatingOrFailed or Failed.',
    selector: ['Selects the pods of the job. Normally set by the system.', 'meta.LabelSelector'],
    successPolicy: ['When the job counts as succeeded.', 'SuccessPolicy'],
    suspend: 'Whether the job is suspended. A suspended job runs no pods.',
    template: ['Template of the pods to create.', 'core.PodTemplateSpec'],
    ttlSecondsAfterFinished: 'Seconds after it finished when the job is deleted.',
  },
  PodFailurePolicy: {
    '': 'How failed pods of a job are handled.',
    rules: ['Rules in order. The first rule that matches applies.', 'PodFailurePolicyRule'],
  },
  PodFailurePolicyRule: {
    '': 'How a failed pod is handled if a requirement is met.',
    action: 'Action to take: FailJob, FailIndex, Ignore or Count.',
    onExitCodes: ['Requirement on the exit codes of containers.', 'PodFailurePolicyOnExitCodesRequirement'],
    onPodConditions: ['Requirement on the conditions of the pod.', 'PodFailurePolicyOnPodConditionsPattern'],
  },
  PodFailurePolicyOnExitCodesRequirement: {
    '': 'A requirement on the exit codes of containers.',
    containerName: 'Name of the container to check. Unset means all containers.',
    operator: 'Relation of the exit code to the values: In or NotIn.',
    values: 'Exit codes to compare with.',
  },
  PodFailurePolicyOnPodConditionsPattern: {
    '': 'A requirement on a condition of a pod.',
    status: 'Required status of the condition.',
    type: 'Required type of the condition.',
  },
  SuccessPolicy: {
    '': 'When a job counts as succeeded.',
    rules: ['Rules, any of which is enough for the job to succeed.', 'SuccessPolicyRule'],
  },
  SuccessPolicyRule: {
    '': 'Indexes that must succeed for a job to succeed.',
    succeededCount: 'Minimum number of indexes that must succeed.',
    succeededIndexes: 'Indexes that must succeed, such as 1,3-5.',
  },
  JobStatus: {
    '': 'The current status of a job.',
    active: 'Number of pods that are pending or running and not terminating.',
    completedIndexes: 'Completed indexes, such as 1,3-5.',
    completionTime: 'Time when the job completed successfully.',
    conditions: ['Latest observations of the state of the job.', 'JobCondition'],
    failed: 'Number of pods that failed.',
    failedIndexes: 'Failed indexes, such as 1,3-5.',
    ready: 'Number of active pods that are ready.',
    startTime: 'Time when the controller started the job.',
    succeeded: 'Number of pods that succeeded.',
    terminating: 'Number of pods that are terminating.',
    uncountedTerminatedPods: ['Terminated pods that are not counted yet.', 'UncountedTerminatedPods'],
  },
  JobCondition: {
    '': 'A condition of a job.',
    ...conditionDoc,
    lastProbeTime: 'Last time the condition was checked.',
  },
  UncountedTerminatedPods: {
    '': 'UIDs of terminated pods that are not counted yet.',
    failed: 'UIDs of failed pods.',
    succeeded: 'UIDs of succeeded pods.',
  },
};

export const coordinationDocs: PackageDocs = {
  Lease: {
    '': 'A lease that one holder at a time owns, for example the leader of a controller.',
    spec: ['Holder and duration of the lease.', 'LeaseSpec'],
  },
  LeaseSpec: {
    '': 'The holder and duration of a lease.',
    acquireTime: 'Time when the current holder acquired the lease.',
    holderIdentity: 'Identity of the current holder.',
    leaseDurationSeconds: 'Seconds after the last renewal when others may acquire the lease.',
    leaseTransitions: 'Number of transitions between holders.',
    preferredHolder: 'Identity of the holder that should acquire the lease.',
    renewTime: 'Time when the current holder last renewed the lease.',
    strategy: 'Strategy that picks the holder in a coordinated leader election.',
  },
};

export const discoveryDocs: PackageDocs = {
  EndpointSlice: {
    '': 'A subset of the endpoints of a service.',
    addressType: 'Type of the addresses: IPv4, IPv6 or FQDN.',
    endpoints: ['Endpoints of the slice.', 'Endpoint'],
    ports: ['Network ports that each endpoint exposes.', 'EndpointPort'],
  },
  Endpoint: {
    '': 'A logical backend of a service.',
    addresses: 'Addresses of the endpoint. Clients may use any of them.',
    conditions: ['Current status of the endpoint.', 'EndpointConditions'],
    deprecatedTopology: 'Deprecated.',
    hints: ['How the endpoint should be consumed.', 'EndpointHints'],
    hostname: 'Hostname of the endpoint.',
    nodeName: 'Name of the node that hosts the endpoint.',
    targetRef: ['Object that the endpoint represents.', 'core.ObjectReference'],
    zone: 'Name of the zone of the endpoint.',
  },
  EndpointConditions: {
    '': 'The current status of an endpoint.',
    ready: 'Whether the endpoint can receive traffic. Unset means true.',
    serving: 'Like ready, but independent of terminating.',
    terminating: 'Whether the endpoint is terminating.',
  },
  EndpointHints: {
    '': 'How an endpoint should be consumed.',
    forNodes: ['Nodes whose clients should use the endpoint.', 'ForNode'],
    forZones: ['Zones whose clients should use the endpoint.', 'ForZone'],
  },
  ForNode: { '': 'A node whose clients should use an endpoint.', name: 'Name of the node.' },
  ForZone: { '': 'A zone whose clients should use an endpoint.', name: 'Name of the zone.' },
  EndpointPort: {
    '': 'A port of the endpoints of a slice.',
    appProtocol: 'Application protocol of the port.',
    name: 'Name of the port, which matches the name of the service port.',
    port: 'Port number.',
    protocol: 'IP protocol of the port: TCP, UDP or SCTP.',
  },
};

export const policyDocs: PackageDocs = {
  PodDisruptionBudget: {
    '': 'The maximum disruption that evictions may cause to a collection of pods.',
    spec: ['Desired behavior of the budget.', 'PodDisruptionBudgetSpec'],
    status: [
      'Most recently observed status of the budget. Populated by the system. Read-only.',
      'PodDisruptionBudgetStatus',
    ],
  },
  PodDisruptionBudgetSpec: {
    '': 'Desired behavior of a PodDisruptionBudget.',
    maxUnavailable: 'Number or percentage of pods that may be unavailable after an eviction.',
    minAvailable: 'Number or percentage of pods that must be available after an eviction.',
    selector: ['Selects the pods.', 'meta.LabelSelector'],
    unhealthyPodEvictionPolicy: 'When unhealthy pods may be evicted: IfHealthyBudget or AlwaysAllow.',
  },
  PodDisruptionBudgetStatus: {
    '': 'The most recently observed status of a PodDisruptionBudget.',
    conditions: ['Latest observations of the state of the budget.', 'meta.Condition'],
    currentHealthy: 'Current number of healthy pods.',
    desiredHealthy: 'Minimum number of healthy pods.',
    disruptedPods: 'Pods whose eviction was accepted and that are not deleted yet.',
    disruptionsAllowed: 'Number of disruptions that are currently allowed.',
    expectedPods: 'Total number of pods that the budget counts.',
    observedGeneration: 'Generation of the budget that the status describes.',
  },
};

const roleRef = ['Role that is granted. Cannot be updated.', 'RoleRef'] as const;
const subjects = ['Users, groups and service accounts that the role is granted to.', 'Subject'] as const;
const rules = ['Rules of the role.', 'PolicyRule'] as const;

export const rbacDocs: PackageDocs = {
  Role: { '': 'A set of permissions within one namespace.', rules },
  ClusterRole: {
    '': 'A cluster-wide set of permissions, which RoleBindings and ClusterRoleBindings can refer to.',
    aggregationRule: ['How the rules are collected from other ClusterRoles.', 'AggregationRule'],
    rules,
  },
  RoleBinding: { '': 'Grants the permissions of a role within one namespace.', roleRef, subjects },
  ClusterRoleBinding: { '': 'Grants the permissions of a ClusterRole in the whole cluster.', roleRef, subjects },
  AggregationRule: {
    '': 'Selects the ClusterRoles whose rules are combined.',
    clusterRoleSelectors: ['Selectors, any of which a ClusterRole must match.', 'meta.LabelSelector'],
  },
  PolicyRule: {
    '': 'A set of actions on a set of resources.',
    apiGroups: 'API groups of the resources. * matches all groups.',
    nonResourceURLs: 'URL paths that are not resources. * is allowed as the last step of a path.',
    resourceNames: 'Names of objects. An empty list matches all objects.',
    resources: 'Resources. * matches all resources.',
    verbs: 'Verbs. * matches all verbs.',
  },
  RoleRef: {
    '': 'A reference to a role.',
    apiGroup: 'API group of the role.',
    kind: 'Kind of the role: Role or ClusterRole.',
    name: 'Name of the role.',
  },
  Subject: {
    '': 'A user, group or service account.',
    apiGroup: 'API group of the subject. Empty for service accounts.',
    kind: 'Kind of the subject: User, Group or ServiceAccount.',
    name: 'Name of the subject.',
    namespace: 'Namespace of the service account. Empty for users and groups.',
  },
};

export const schedulingDocs: PackageDocs = {
  PriorityClass: {
    '': 'Maps a name to a priority of pods.',
    description: 'When to use the class.',
    globalDefault: 'Whether pods without a class get this one.',
    preemptionPolicy: 'Whether pods may preempt pods of lower priority: PreemptLowerPriority or Never.',
    value: 'Priority of the pods. Higher values are more important.',
  },
};

export const storageDocs: PackageDocs = {
  StorageClass: {
    '': 'Parameters for the dynamic provisioning of persistent volumes.',
    allowVolumeExpansion: 'Whether volumes can be expanded.',
    allowedTopologies: ['Node topologies where volumes can be provisioned.', 'core.TopologySelectorTerm'],
    mountOptions: 'Mount options of provisioned volumes.',
    parameters: 'Parameters for the provisioner.',
    provisioner: 'Name of the provisioner.',
    reclaimPolicy: 'Reclaim policy of provisioned volumes: Delete or Retain.',
    volumeBindingMode: 'When volumes are provisioned and bound: Immediate or WaitForFirstConsumer.',
  },
};

export const authenticationDocs: PackageDocs = {
  SelfSubjectReview: {
    '': 'The user information of the current request, as the API server sees it.',
    status: ['User attributes. Filled in by the server.', 'SelfSubjectReviewStatus'],
  },
  SelfSubjectReviewStatus: {
    '': 'Attributes of the current user.',
    userInfo: ['User attributes of the current request.', 'UserInfo'],
  },
  UserInfo: {
    '': 'Information about a user.',
    extra: 'Additional information from the authenticator.',
    groups: 'Groups of the user.',
    uid: 'UID of the user.',
    username: 'Name of the user.',
  },
  TokenReview: {
    '': 'Attempts to authenticate a token to a known user.',
    spec: ['Token to review.', 'TokenReviewSpec'],
    status: ['Result of the review. Filled in by the server.', 'TokenReviewStatus'],
  },
  TokenReviewSpec: {
    '': 'A token to authenticate.',
    audiences: 'Audiences, one of which the token must be intended for. Defaults to the API server.',
    token: 'Bearer token.',
  },
  TokenReviewStatus: {
    '': 'The result of an authentication.',
    audiences: 'Audiences that both the request and the token name.',
    authenticated: 'Whether the token belongs to a known user.',
    error: 'Why the token could not be checked.',
    user: ['User of the token.', 'UserInfo'],
  },
};

const resourceAttributes = ['Request for a resource.', 'ResourceAttributes'] as const;
const nonResourceAttributes = ['Request for a path that is not a resource.', 'NonResourceAttributes'] as const;
const result = ['Whether the request is allowed. Filled in by the server.', 'SubjectAccessReviewStatus'] as const;

export const authorizationDocs: PackageDocs = {
  SelfSubjectAccessReview: {
    '': 'Checks whether the current user can perform an action.',
    spec: ['Request to evaluate.', 'SelfSubjectAccessReviewSpec'],
    status: result,
  },
  SelfSubjectAccessReviewSpec: {
    '': 'A request to evaluate. Exactly one member must be set.',
    nonResourceAttributes,
    resourceAttributes,
  },
  SubjectAccessReview: {
    '': 'Checks whether a user or group can perform an action.',
    spec: ['Request to evaluate.', 'SubjectAccessReviewSpec'],
    status: result,
  },
  LocalSubjectAccessReview: {
    '': 'Checks whether a user or group can perform an action in one namespace.',
    spec: ['Request to evaluate.', 'SubjectAccessReviewSpec'],
    status: result,
  },
  SubjectAccessReviewSpec: {
    '': 'A request to evaluate and the user who makes it.',
    extra: 'Additional information about the user.',
    groups: 'Groups of the user.',
    nonResourceAttributes,
    resourceAttributes,
    uid: 'UID of the user.',
    user: 'Name of the user.',
  },
  SubjectAccessReviewStatus: {
    '': 'The result of an access check.',
    allowed: 'Whether the action is allowed.',
    denied: 'Whether the action is denied, so that no other authorizer may allow it.',
    evaluationError: 'Error during the check. The result may be valid despite it.',
    reason: 'Why the request was allowed or denied.',
  },
  ResourceAttributes: {
    '': 'A request for a resource.',
    fieldSelector: ['Field selector of the request.', 'FieldSelectorAttributes'],
    group: 'API group of the resource. * means all groups.',
    labelSelector: ['Label selector of the request.', 'LabelSelectorAttributes'],
    name: 'Name of the object. Empty means all objects.',
    namespace: 'Namespace of the request. Empty means all namespaces, or none for cluster-scoped resources.',
    resource: 'Resource type. * means all resources.',
    subresource: 'Subresource type.',
    verb: 'Verb: get, list, watch, create, update, patch or delete. * means all verbs.',
    version: 'API version of the resource. * means all versions.',
  },
  FieldSelectorAttributes: {
    '': 'A field selector of a request.',
    rawSelector: 'Selector as it is in the query.',
    requirements: ['Parsed requirements of the selector.', 'meta.FieldSelectorRequirement'],
  },
  LabelSelectorAttributes: {
    '': 'A label selector of a request.',
    rawSelector: 'Selector as it is in the query.',
    requirements: ['Parsed requirements of the selector.', 'meta.LabelSelectorRequirement'],
  },
  NonResourceAttributes: {
    '': 'A request for a path that is not a resource.',
    path: 'URL path of the request.',
    verb: 'HTTP method of the request, in lower case.',
  },
  SelfSubjectRulesReview: {
    '': 'Lists the actions that the current user can perform in a namespace.',
    spec: ['Namespace to evaluate.', 'SelfSubjectRulesReviewSpec'],
    status: ['Allowed actions. Filled in by the server.', 'SubjectRulesReviewStatus'],
  },
  SelfSubjectRulesReviewSpec: { '': 'The namespace to evaluate.', namespace: 'Name of the namespace.' },
  SubjectRulesReviewStatus: {
    '': 'The actions that a user can perform.',
    evaluationError: 'Error during the evaluation, if any. The rules may then be incomplete.',
    incomplete: 'Whether the lists may be incomplete.',
    nonResourceRules: ['Actions allowed on paths that are not resources.', 'NonResourceRule'],
    resourceRules: ['Actions allowed on resources.', 'ResourceRule'],
  },
  NonResourceRule: {
    '': 'Actions allowed on paths that are not resources.',
    nonResourceURLs: 'URL paths. * matches all paths.',
    verbs: 'HTTP methods in lower case. * matches all methods.',
  },
  ResourceRule: {
    '': 'Actions allowed on resources.',
    apiGroups: 'API groups of the resources. * matches all groups.',
    resourceNames: 'Names of objects. An empty list matches all objects.',
    resources: 'Resources. * matches all resources.',
    verbs: 'Verbs. * matches all verbs.',
  },
};

const requirement = {
  key: 'Key that the requirement applies to.',
  operator: 'Relation of the key to the values: In, NotIn, Exists or DoesNotExist.',
  values: 'Values to compare with.',
};

export const metaDocs: PackageDocs = {
  ObjectMeta: {
    managedFields: ['Which manager manages which fields. Set by the server.', 'ManagedFieldsEntry'],
    ownerReferences: [
      'Objects that this object depends on. It is garbage collected when all of them are deleted.',
      'OwnerReference',
    ],
  },
  ManagedFieldsEntry: { '': 'The fields that one manager manages.' },
  OwnerReference: { '': 'A reference to an object that owns this object.' },
  LabelSelector: {
    '': 'A label query over a set of objects. All requirements must match.',
    matchExpressions: ['Requirements on labels.', 'LabelSelectorRequirement'],
    matchLabels: 'Labels and the values that they must have.',
  },
  LabelSelectorRequirement: { '': 'A requirement on a label.', ...requirement },
  FieldSelectorRequirement: { '': 'A requirement on a field.', ...requirement },
  Condition: {
    '': 'One aspect of the current state of an object.',
    ...conditionDoc,
    observedGeneration: 'Generation of the object that the condition describes.',
  },
};
