/** The words for the kinds of the smaller groups. */
import { condition } from '#engine/openapi/parts/core.ts';
import type { Parts } from '#engine/openapi/parts/part.ts';

export const appsParts: Parts = {
  ControllerRevision: {
    '': 'A version of something that a controller keeps, so that it can be brought back.',
    data: 'What is kept.',
    revision: 'Its number.',
  },
};

export const batchParts: Parts = {
  Job: {
    '': 'Pods that shall run to their end.',
    spec: ['How many, and what.', 'JobSpec'],
    status: ['How far it is; written by the system.', 'JobStatus'],
  },
  JobSpec: {
    '': 'Which pods run to their end, and how many.',
    activeDeadlineSeconds: 'Seconds after its start when the job is ended.',
    backoffLimit: 'How many pods may fail.',
    backoffLimitPerIndex: 'How many pods of an index may fail.',
    completionMode: 'NonIndexed or Indexed.',
    completions: 'How many pods must succeed.',
    managedBy: 'The controller that takes care of it.',
    manualSelector: 'Whether the selector is made by hand.',
    maxFailedIndexes: 'How many indexes may fail.',
    parallelism: 'How many pods run at a time.',
    podFailurePolicy: ['What failures mean.', 'PodFailurePolicy'],
    podReplacementPolicy: 'When failed pods are replaced: TerminatingOrFailed or Failed.',
    selector: ['Its pods; made by the system.', 'meta.LabelSelector'],
    successPolicy: ['When it counts as succeeded.', 'SuccessPolicy'],
    suspend: 'Whether it runs no pods for now.',
    template: ['The pods.', 'core.PodTemplateSpec'],
    ttlSecondsAfterFinished: 'Seconds after its end when it is removed.',
  },
  PodFailurePolicy: {
    '': 'What failures of pods mean.',
    rules: ['The first that fits counts.', 'PodFailurePolicyRule'],
  },
  PodFailurePolicyRule: {
    '': 'What a failure means.',
    action: 'FailJob, FailIndex, Ignore or Count.',
    onExitCodes: ['Failures with these exit codes.', 'PodFailurePolicyOnExitCodesRequirement'],
    onPodConditions: ['Failures with these conditions.', 'PodFailurePolicyOnPodConditionsPattern'],
  },
  PodFailurePolicyOnExitCodesRequirement: {
    '': 'Exit codes.',
    containerName: 'Of this container; by default of all.',
    operator: 'In or NotIn.',
    values: 'The codes.',
  },
  PodFailurePolicyOnPodConditionsPattern: { '': 'A condition of a pod.', status: 'Its status.', type: 'Its type.' },
  SuccessPolicy: { '': 'When a job counts as succeeded.', rules: ['Any of them is enough.', 'SuccessPolicyRule'] },
  SuccessPolicyRule: {
    '': 'What must have succeeded.',
    succeededCount: 'How many indexes.',
    succeededIndexes: 'Which indexes: 1,3-5.',
  },
  JobStatus: {
    '': 'How far a job is.',
    active: 'Pods that run.',
    completedIndexes: 'Indexes that succeeded: 1,3-5.',
    completionTime: 'When it was done.',
    conditions: ['The state of the job in several aspects.', 'JobCondition'],
    failed: 'Pods that failed.',
    failedIndexes: 'Indexes that failed: 1,3-5.',
    ready: 'Pods that are ready.',
    startTime: 'When it was begun.',
    succeeded: 'Pods that succeeded.',
    terminating: 'Pods that are ending.',
    uncountedTerminatedPods: ['Pods that ended and are not counted yet.', 'UncountedTerminatedPods'],
  },
  JobCondition: { '': 'One aspect of the state of a job.', ...condition, lastProbeTime: 'When it was last looked at.' },
  UncountedTerminatedPods: {
    '': 'Pods that are not counted yet.',
    failed: 'UIDs of failed ones.',
    succeeded: 'UIDs of succeeded ones.',
  },
};

export const coordinationParts: Parts = {
  Lease: { '': 'Says who does something now, and until when.', spec: ['Who and until when.', 'LeaseSpec'] },
  LeaseSpec: {
    '': 'Who holds a lease.',
    acquireTime: 'Since when.',
    holderIdentity: 'Who.',
    leaseDurationSeconds: 'How long after the last renewal it is theirs.',
    leaseTransitions: 'How often it changed hands.',
    preferredHolder: 'Who should have it.',
    renewTime: 'When it was last renewed.',
    strategy: 'How the holder is chosen.',
  },
};

export const discoveryParts: Parts = {
  EndpointSlice: {
    '': 'Where some of the servers behind a service are.',
    addressType: 'What the addresses are: IPv4, IPv6 or FQDN.',
    endpoints: ['The servers.', 'Endpoint'],
    ports: ['On which ports they listen, by the names of the ports of the service.', 'EndpointPort'],
  },
  Endpoint: {
    '': 'One server behind a service.',
    addresses: 'Where it is; all lead to the same one.',
    conditions: ['Whether it can be used.', 'EndpointConditions'],
    deprecatedTopology: 'Not used any more.',
    hints: ['Who should use it.', 'EndpointHints'],
    hostname: 'Its name.',
    nodeName: 'Its node.',
    targetRef: ['The object that it belongs to.', 'core.ObjectReference'],
    zone: 'Its zone.',
  },
  EndpointConditions: {
    '': 'Whether a server can be used.',
    ready: 'Whether it takes requests; unknown counts as yes.',
    serving: 'Like ready, also while it ends.',
    terminating: 'Whether it ends.',
  },
  EndpointHints: {
    '': 'Who should use a server.',
    forNodes: ['Users on these nodes.', 'ForNode'],
    forZones: ['Users in these zones.', 'ForZone'],
  },
  ForNode: { '': 'A node whose users should use a server.', name: 'Its name.' },
  ForZone: { '': 'A zone whose users should use a server.', name: 'Its name.' },
  EndpointPort: {
    '': 'A port on which servers listen.',
    appProtocol: 'What is spoken there.',
    name: 'The name of the port of the service.',
    port: 'The port.',
    protocol: 'TCP, UDP or SCTP.',
  },
};

export const policyParts: Parts = {
  PodDisruptionBudget: {
    '': 'How many pods of a set may be taken away at a time.',
    spec: ['Which and how many.', 'PodDisruptionBudgetSpec'],
    status: ['How many now; written by the system.', 'PodDisruptionBudgetStatus'],
  },
  PodDisruptionBudgetSpec: {
    '': 'How many pods of which set may be taken away.',
    maxUnavailable: 'How many may be missing, as a number or percentage.',
    minAvailable: 'How many must stay, as a number or percentage.',
    selector: ['The pods.', 'meta.LabelSelector'],
    unhealthyPodEvictionPolicy: 'Whether pods that are not ready may go anyway: IfHealthyBudget or AlwaysAllow.',
  },
  PodDisruptionBudgetStatus: {
    '': 'How many pods may be taken away now.',
    conditions: ['The state of the budget in several aspects.', 'meta.Condition'],
    currentHealthy: 'Pods that are ready.',
    desiredHealthy: 'Pods that must be ready.',
    disruptedPods: 'Pods that are being taken away.',
    disruptionsAllowed: 'How many may be taken away now.',
    expectedPods: 'All pods that count.',
    observedGeneration: 'The generation that was looked at.',
  },
};

const roleRef = ['The role.', 'RoleRef'] as const;
const subjects = ['Who gets it.', 'Subject'] as const;
const rules = ['What is allowed.', 'PolicyRule'] as const;

export const rbacParts: Parts = {
  Role: { '': 'What is allowed in a namespace.', rules },
  ClusterRole: {
    '': 'What is allowed in the whole cluster, or wherever it is bound.',
    aggregationRule: ['Roles of which it is made.', 'AggregationRule'],
    rules,
  },
  RoleBinding: { '': 'Gives a role to somebody in a namespace.', roleRef, subjects },
  ClusterRoleBinding: { '': 'Gives a cluster role to somebody everywhere.', roleRef, subjects },
  AggregationRule: {
    '': 'Roles of which another is made.',
    clusterRoleSelectors: ['Which ones.', 'meta.LabelSelector'],
  },
  PolicyRule: {
    '': 'What is allowed.',
    apiGroups: 'Groups of the resources; * for all.',
    nonResourceURLs: 'Paths that are no resources.',
    resourceNames: 'Names of objects; empty for all.',
    resources: 'Resources; * for all.',
    verbs: 'What may be done; * for all.',
  },
  RoleRef: { '': 'A role.', apiGroup: 'Its group.', kind: 'Role or ClusterRole.', name: 'Its name.' },
  Subject: {
    '': 'A user, group or service account.',
    apiGroup: 'Its group; empty for service accounts.',
    kind: 'User, Group or ServiceAccount.',
    name: 'Its name.',
    namespace: 'The namespace of a service account.',
  },
};

export const schedulingParts: Parts = {
  PriorityClass: {
    '': 'A name for a priority of pods.',
    description: 'What it is for.',
    globalDefault: 'Whether pods without a class get it.',
    preemptionPolicy: 'Whether its pods may push out others: PreemptLowerPriority or Never.',
    value: 'The priority: higher ones are more important.',
  },
};

export const storageParts: Parts = {
  StorageClass: {
    '': 'A kind of storage, and who makes volumes of it.',
    allowVolumeExpansion: 'Whether volumes can grow.',
    allowedTopologies: ['Where volumes may be.', 'core.TopologySelectorTerm'],
    mountOptions: 'Options of the mounts.',
    parameters: 'Settings for the provisioner.',
    provisioner: 'Who makes the volumes.',
    reclaimPolicy: 'What becomes of a volume after its claim: Delete or Retain.',
    volumeBindingMode: 'When volumes are made: Immediate or WaitForFirstConsumer.',
  },
};

export const authenticationParts: Parts = {
  SelfSubjectReview: { '': 'Who am I?', status: ['The answer.', 'SelfSubjectReviewStatus'] },
  SelfSubjectReviewStatus: { '': 'Who you are.', userInfo: ['The user.', 'UserInfo'] },
  UserInfo: {
    '': 'A user.',
    extra: 'What else is known of them.',
    groups: 'Their groups.',
    uid: 'Their UID.',
    username: 'Their name.',
  },
  TokenReview: {
    '': 'Whose token is this?',
    spec: ['The token.', 'TokenReviewSpec'],
    status: ['The answer.', 'TokenReviewStatus'],
  },
  TokenReviewSpec: { '': 'A token.', audiences: 'For whom it must be.', token: 'The token.' },
  TokenReviewStatus: {
    '': 'Whose token it is.',
    audiences: 'For whom it is.',
    authenticated: 'Whether it is valid.',
    error: 'What is wrong with it.',
    user: ['The user.', 'UserInfo'],
  },
};

const resourceAttributes = ['A request for a resource.', 'ResourceAttributes'] as const;
const nonResourceAttributes = ['A request for another path.', 'NonResourceAttributes'] as const;
const answer = ['The answer.', 'SubjectAccessReviewStatus'] as const;

export const authorizationParts: Parts = {
  SelfSubjectAccessReview: {
    '': 'May I?',
    spec: ['What.', 'SelfSubjectAccessReviewSpec'],
    status: answer,
  },
  SelfSubjectAccessReviewSpec: { '': 'What is asked for.', nonResourceAttributes, resourceAttributes },
  SubjectAccessReview: { '': 'May they?', spec: ['Who and what.', 'SubjectAccessReviewSpec'], status: answer },
  LocalSubjectAccessReview: {
    '': 'May they, in this namespace?',
    spec: ['Who and what.', 'SubjectAccessReviewSpec'],
    status: answer,
  },
  SubjectAccessReviewSpec: {
    '': 'Who asks for what.',
    extra: 'What else is known of the user.',
    groups: 'The groups of the user.',
    nonResourceAttributes,
    resourceAttributes,
    uid: 'The UID of the user.',
    user: 'The user.',
  },
  SubjectAccessReviewStatus: {
    '': 'Whether it is allowed.',
    allowed: 'Whether it is.',
    denied: 'Whether it is refused for good.',
    evaluationError: 'What went wrong.',
    reason: 'Why.',
  },
  ResourceAttributes: {
    '': 'A request for a resource.',
    fieldSelector: ['Selects by fields.', 'FieldSelectorAttributes'],
    group: 'Its group; * for all.',
    labelSelector: ['Selects by labels.', 'LabelSelectorAttributes'],
    name: 'The object; empty for all.',
    namespace: 'The namespace; empty for all.',
    resource: 'The resource; * for all.',
    subresource: 'The subresource.',
    verb: 'get, list, watch, create, update, patch, delete; * for all.',
    version: 'Its version; * for all.',
  },
  FieldSelectorAttributes: {
    '': 'Selects by fields.',
    rawSelector: 'As the request has it.',
    requirements: ['Parsed.', 'meta.FieldSelectorRequirement'],
  },
  LabelSelectorAttributes: {
    '': 'Selects by labels.',
    rawSelector: 'As the request has it.',
    requirements: ['Parsed.', 'meta.LabelSelectorRequirement'],
  },
  NonResourceAttributes: { '': 'A request for another path.', path: 'The path.', verb: 'The method, in lower case.' },
  SelfSubjectRulesReview: {
    '': 'What may I do in a namespace?',
    spec: ['Which namespace.', 'SelfSubjectRulesReviewSpec'],
    status: ['The answer.', 'SubjectRulesReviewStatus'],
  },
  SelfSubjectRulesReviewSpec: { '': 'Which namespace.', namespace: 'Its name.' },
  SubjectRulesReviewStatus: {
    '': 'What is allowed.',
    evaluationError: 'What went wrong.',
    incomplete: 'Whether there may be more.',
    nonResourceRules: ['About paths that are no resources.', 'NonResourceRule'],
    resourceRules: ['About resources.', 'ResourceRule'],
  },
  NonResourceRule: { '': 'What is allowed on paths.', nonResourceURLs: 'The paths.', verbs: 'What may be done.' },
  ResourceRule: {
    '': 'What is allowed on resources.',
    apiGroups: 'Their groups.',
    resourceNames: 'Names of objects; empty for all.',
    resources: 'The resources.',
    verbs: 'What may be done.',
  },
};

const requirement = {
  key: 'What is looked at.',
  operator: 'In, NotIn, Exists or DoesNotExist.',
  values: 'What it is compared with.',
};

export const metaParts: Parts = {
  ObjectMeta: {
    managedFields: ['Which manager manages which fields.', 'ManagedFieldsEntry'],
    ownerReferences: ['Objects that this one depends on; it is collected when all of them are gone.', 'OwnerReference'],
  },
  ManagedFieldsEntry: { '': 'The fields that a manager manages.' },
  OwnerReference: { '': 'An object that owns this one.' },
  LabelSelector: {
    '': 'Selects objects by their labels; all of its parts must fit.',
    matchExpressions: ['Requirements about labels.', 'LabelSelectorRequirement'],
    matchLabels: 'Labels that must have these values.',
  },
  LabelSelectorRequirement: { '': 'What a label must be.', ...requirement },
  FieldSelectorRequirement: { '': 'What a field must be.', ...requirement },
  Condition: {
    '': 'One aspect of the state of an object.',
    ...condition,
    observedGeneration: 'The generation that was looked at.',
  },
};
