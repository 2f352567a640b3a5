/** The core group, except nodes, pods and their contents. Notation: message-table.ts. */
export const CORE_TABLE = `
Namespace
  1 metadata? ObjectMeta; 2 spec? NamespaceSpec; 3 status? NamespaceStatus
NamespaceSpec
  1 finalizers? string[]
NamespaceStatus
  1 phase? string; 2 conditions? NamespaceCondition[]
NamespaceCondition
  1 type string; 2 status string; 4 lastTransitionTime? Time; 5 reason? string; 6 message? string
LocalObjectReference
  1 name? string
PersistentVolumeClaimSpec
  1 accessModes? string[]; 4 selector? *LabelSelector; 2 resources? VolumeResourceRequirements; 3 volumeName? string;
  5 storageClassName? *string; 6 volumeMode? *string; 7 dataSource? *TypedLocalObjectReference;
  8 dataSourceRef? *TypedObjectReference; 9 volumeAttributesClassName? *string
VolumeResourceRequirements
  1 limits? Quantity{}; 2 requests? Quantity{}
TypedLocalObjectReference
  1 apiGroup *string; 2 kind string; 3 name string
TypedObjectReference
  1 apiGroup *string; 2 kind string; 3 name string; 4 namespace? *string
NodeSelector
  1 nodeSelectorTerms NodeSelectorTerm[]
NodeSelectorTerm
  1 matchExpressions? NodeSelectorRequirement[]; 2 matchFields? NodeSelectorRequirement[]
NodeSelectorRequirement
  1 key string; 2 operator string; 3 values? string[]
PersistentVolume
  1 metadata? ObjectMeta; 2 spec? PersistentVolumeSpec; 3 status? PersistentVolumeStatus
PersistentVolumeSpec
  1 capacity? Quantity{}; 2 ...PersistentVolumeSource; 3 accessModes? string[]; 4 claimRef? *ObjectReference;
  5 persistentVolumeReclaimPolicy? string; 6 storageClassName? string; 7 mountOptions? string[];
  8 volumeMode? *string; 9 nodeAffinity? *VolumeNodeAffinity; 10 volumeAttributesClassName? *string
SecretReference
  1 name? string; 2 namespace? string
ObjectReference
  1 kind? string; 2 namespace? string; 3 name? string; 4 uid? string; 5 apiVersion? string; 6 resourceVersion? string;
  7 fieldPath? string
VolumeNodeAffinity
  1 required? *NodeSelector
PersistentVolumeStatus
  1 phase? string; 2 message? string; 3 reason? string; 4 lastPhaseTransitionTime? *Time
PersistentVolumeClaim
  1 metadata? ObjectMeta; 2 spec? PersistentVolumeClaimSpec; 3 status? PersistentVolumeClaimStatus
PersistentVolumeClaimStatus
  1 phase? string; 2 accessModes? string[]; 3 capacity? Quantity{}; 4 conditions? PersistentVolumeClaimCondition[];
  5 allocatedResources? Quantity{}; 7 allocatedResourceStatuses? string{};
  8 currentVolumeAttributesClassName? *string; 9 modifyVolumeStatus? *ModifyVolumeStatus
PersistentVolumeClaimCondition
  1 type string; 2 status string; 3 lastProbeTime? Time; 4 lastTransitionTime? Time; 5 reason? string;
  6 message? string
ModifyVolumeStatus
  1 targetVolumeAttributesClassName? string; 2 status string
ConfigMap
  1 metadata? ObjectMeta; 4 immutable? *bool; 2 data? string{}; 3 binaryData? bytes{}
Secret
  1 metadata? ObjectMeta; 5 immutable? *bool; 2 data? bytes{}; 4 stringData? string{}; 3 type? string
ServiceAccount
  1 metadata? ObjectMeta; 2 secrets? ObjectReference[]; 3 imagePullSecrets? LocalObjectReference[];
  4 automountServiceAccountToken? *bool
Event
  1 metadata ObjectMeta; 2 involvedObject ObjectReference; 3 reason? string; 4 message? string; 5 source? EventSource;
  6 firstTimestamp? Time; 7 lastTimestamp? Time; 8 count? int32; 9 type? string; 10 eventTime? MicroTime;
  11 series? *EventSeries; 12 action? string; 13 related? *ObjectReference; 14 reportingComponent string;
  15 reportingInstance string
EventSource
  1 component? string; 2 host? string
EventSeries
  1 count? int32; 2 lastObservedTime? MicroTime
ResourceQuota
  1 metadata? ObjectMeta; 2 spec? ResourceQuotaSpec; 3 status? ResourceQuotaStatus
ResourceQuotaSpec
  1 hard? Quantity{}; 2 scopes? string[]; 3 scopeSelector? *ScopeSelector
ScopeSelector
  1 matchExpressions? ScopedResourceSelectorRequirement[]
ScopedResourceSelectorRequirement
  1 scopeName string; 2 operator string; 3 values? string[]
ResourceQuotaStatus
  1 hard? Quantity{}; 2 used? Quantity{}
Service
  1 metadata? ObjectMeta; 2 spec? ServiceSpec; 3 status? ServiceStatus
ServiceSpec
  1 ports? ServicePort[]; 2 selector? string{}; 3 clusterIP? string; 18 clusterIPs? string[]; 4 type? string;
  5 externalIPs? string[]; 7 sessionAffinity? string; 8 loadBalancerIP? string; 9 loadBalancerSourceRanges? string[];
  10 externalName? string; 11 externalTrafficPolicy? string; 12 healthCheckNodePort? int32;
  13 publishNotReadyAddresses? bool; 14 sessionAffinityConfig? *SessionAffinityConfig; 19 ipFamilies? string[];
  17 ipFamilyPolicy? *string; 20 allocateLoadBalancerNodePorts? *bool; 21 loadBalancerClass? *string;
  22 internalTrafficPolicy? *string; 23 trafficDistribution? *string
ServicePort
  1 name? string; 2 protocol? string; 6 appProtocol? *string; 3 port int32; 4 targetPort? IntOrString;
  5 nodePort? int32
SessionAffinityConfig
  1 clientIP? *ClientIPConfig
ClientIPConfig
  1 timeoutSeconds? *int32
ServiceStatus
  1 loadBalancer? LoadBalancerStatus; 2 conditions? Condition[]
LoadBalancerStatus
  1 ingress? LoadBalancerIngress[]
LoadBalancerIngress
  1 ip? string; 2 hostname? string; 3 ipMode? *string; 4 ports? PortStatus[]
PortStatus
  1 port int32; 2 protocol string; 3 error? *string
Binding
  1 metadata? ObjectMeta; 2 target ObjectReference
TopologySelectorTerm
  1 matchLabelExpressions? TopologySelectorLabelRequirement[]
TopologySelectorLabelRequirement
  1 key string; 2 values string[]
`;
