/** batch, apps, autoscaling, coordination, discovery, events, policy, scheduling and storage. Notation: message-table.ts. */
export const WORKLOAD_TABLE = `
Job
  1 metadata? ObjectMeta; 2 spec? JobSpec; 3 status? JobStatus
JobSpec
  1 parallelism? *int32; 2 completions? *int32; 3 activeDeadlineSeconds? *int64;
  11 podFailurePolicy? *PodFailurePolicy; 16 successPolicy? *SuccessPolicy; 7 backoffLimit? *int32;
  12 backoffLimitPerIndex? *int32; 13 maxFailedIndexes? *int32; 4 selector? *LabelSelector; 5 manualSelector? *bool;
  6 template PodTemplateSpec; 8 ttlSecondsAfterFinished? *int32; 9 completionMode? *string; 10 suspend? *bool;
  14 podReplacementPolicy? *string; 15 managedBy? *string
PodFailurePolicy
  1 rules PodFailurePolicyRule[]
PodFailurePolicyRule
  1 action string; 2 onExitCodes? *PodFailurePolicyOnExitCodesRequirement;
  3 onPodConditions? PodFailurePolicyOnPodConditionsPattern[]
PodFailurePolicyOnExitCodesRequirement
  1 containerName? *string; 2 operator string; 3 values int32[]
PodFailurePolicyOnPodConditionsPattern
  1 type string; 2 status string
SuccessPolicy
  1 rules SuccessPolicyRule[]
SuccessPolicyRule
  1 succeededIndexes? *string; 2 succeededCount? *int32
JobStatus
  1 conditions? JobCondition[]; 2 startTime? *Time; 3 completionTime? *Time; 4 active? int32; 5 succeeded? int32;
  6 failed? int32; 11 terminating? *int32; 7 completedIndexes? string; 10 failedIndexes? *string;
  8 uncountedTerminatedPods? *UncountedTerminatedPods; 9 ready? *int32
JobCondition
  1 type string; 2 status string; 3 lastProbeTime? Time; 4 lastTransitionTime? Time; 5 reason? string;
  6 message? string
UncountedTerminatedPods
  1 succeeded? string[]; 2 failed? string[]
Lease
  1 metadata? ObjectMeta; 2 spec? LeaseSpec
LeaseSpec
  1 holderIdentity? *string; 2 leaseDurationSeconds? *int32; 3 acquireTime? *MicroTime; 4 renewTime? *MicroTime;
  5 leaseTransitions? *int32; 6 strategy? *string; 7 preferredHolder? *string
EndpointSlice
  1 metadata? ObjectMeta; 4 addressType string; 2 endpoints Endpoint[]; 3 ports EndpointPort[]
Endpoint
  1 addresses string[]; 2 conditions? EndpointConditions; 3 hostname? *string; 4 targetRef? *ObjectReference;
  5 deprecatedTopology? string{}; 6 nodeName? *string; 7 zone? *string; 8 hints? *EndpointHints
EndpointConditions
  1 ready? *bool; 2 serving? *bool; 3 terminating? *bool
EndpointHints
  1 forZones? ForZone[]; 2 forNodes? ForNode[]
ForZone
  1 name string
ForNode
  1 name string
EndpointPort
  1 name? *string; 2 protocol? *string; 3 port? *int32; 4 appProtocol? *string
StorageClass
  1 metadata? ObjectMeta; 2 provisioner string; 3 parameters? string{}; 4 reclaimPolicy? *string;
  5 mountOptions? string[]; 6 allowVolumeExpansion? *bool; 7 volumeBindingMode? *string;
  8 allowedTopologies? TopologySelectorTerm[]
ControllerRevision
  1 metadata? ObjectMeta; 2 data? RawExtension; 3 revision int64
PriorityClass
  1 metadata? ObjectMeta; 2 value int32; 3 globalDefault? bool; 4 description? string; 5 preemptionPolicy? *string
PodDisruptionBudget
  1 metadata? ObjectMeta; 2 spec? PodDisruptionBudgetSpec; 3 status? PodDisruptionBudgetStatus
PodDisruptionBudgetSpec
  1 minAvailable? *IntOrString; 2 selector? *LabelSelector; 3 maxUnavailable? *IntOrString;
  4 unhealthyPodEvictionPolicy? *string
PodDisruptionBudgetStatus
  1 observedGeneration? int64; 2 disruptedPods? Time{}; 3 disruptionsAllowed int32; 4 currentHealthy int32;
  5 desiredHealthy int32; 6 expectedPods int32; 7 conditions? Condition[]
Eviction
  1 metadata? ObjectMeta; 2 deleteOptions? *DeleteOptions
events.Event
  1 metadata ObjectMeta; 2 eventTime MicroTime; 3 series? *events.EventSeries; 4 reportingController? string;
  5 reportingInstance? string; 6 action? string; 7 reason? string; 8 regarding? ObjectReference;
  9 related? *ObjectReference; 10 note? string; 11 type? string; 12 deprecatedSource? EventSource;
  13 deprecatedFirstTimestamp? Time; 14 deprecatedLastTimestamp? Time; 15 deprecatedCount? int32
events.EventSeries
  1 count int32; 2 lastObservedTime MicroTime
Scale
  1 metadata? ObjectMeta; 2 spec? ScaleSpec; 3 status? ScaleStatus
ScaleSpec
  1 replicas? int32
ScaleStatus
  1 replicas int32; 2 selector? string
`;
