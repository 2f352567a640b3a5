/** Pods and pod templates, except containers and volumes. Notation: message-table.ts. */
export const POD_TABLE = `
Pod
  1 metadata? ObjectMeta; 2 spec? PodSpec; 3 status? PodStatus
PodSpec
  1 volumes? Volume[]; 20 initContainers? Container[]; 2 containers Container[];
  34 ephemeralContainers? EphemeralContainer[]; 3 restartPolicy? string; 4 terminationGracePeriodSeconds? *int64;
  5 activeDeadlineSeconds? *int64; 6 dnsPolicy? string; 7 nodeSelector? string{}; 8 serviceAccountName? string;
  9 serviceAccount? string; 21 automountServiceAccountToken? *bool; 10 nodeName? string; 11 hostNetwork? bool;
  12 hostPID? bool; 13 hostIPC? bool; 27 shareProcessNamespace? *bool; 14 securityContext? *PodSecurityContext;
  15 imagePullSecrets? LocalObjectReference[]; 16 hostname? string; 17 subdomain? string; 18 affinity? *Affinity;
  19 schedulerName? string; 22 tolerations? Toleration[]; 23 hostAliases? HostAlias[]; 24 priorityClassName? string;
  25 priority? *int32; 26 dnsConfig? *PodDNSConfig; 28 readinessGates? PodReadinessGate[];
  29 runtimeClassName? *string; 30 enableServiceLinks? *bool; 31 preemptionPolicy? *string; 32 overhead? Quantity{};
  33 topologySpreadConstraints? TopologySpreadConstraint[]; 35 setHostnameAsFQDN? *bool; 36 os? *PodOS;
  37 hostUsers? *bool; 38 schedulingGates? PodSchedulingGate[]; 39 resourceClaims? PodResourceClaim[];
  40 resources? *ResourceRequirements
PodSecurityContext
  1 seLinuxOptions? *SELinuxOptions; 8 windowsOptions? *WindowsSecurityContextOptions; 2 runAsUser? *int64;
  6 runAsGroup? *int64; 3 runAsNonRoot? *bool; 4 supplementalGroups? int64[]; 12 supplementalGroupsPolicy? *string;
  5 fsGroup? *int64; 7 sysctls? Sysctl[]; 9 fsGroupChangePolicy? *string; 10 seccompProfile? *SeccompProfile;
  11 appArmorProfile? *AppArmorProfile; 13 seLinuxChangePolicy? *string
Sysctl
  1 name string; 2 value string
Affinity
  1 nodeAffinity? *NodeAffinity; 2 podAffinity? *PodAffinity; 3 podAntiAffinity? *PodAntiAffinity
NodeAffinity
  1 requiredDuringSchedulingIgnoredDuringExecution? *NodeSelector;
  2 preferredDuringSchedulingIgnoredDuringExecution? PreferredSchedulingTerm[]
PreferredSchedulingTerm
  1 weight int32; 2 preference NodeSelectorTerm
PodAffinity
  1 requiredDuringSchedulingIgnoredDuringExecution? PodAffinityTerm[];
  2 preferredDuringSchedulingIgnoredDuringExecution? WeightedPodAffinityTerm[]
PodAffinityTerm
  1 labelSelector? *LabelSelector; 2 namespaces? string[]; 3 topologyKey string; 4 namespaceSelector? *LabelSelector;
  5 matchLabelKeys? string[]; 6 mismatchLabelKeys? string[]
WeightedPodAffinityTerm
  1 weight int32; 2 podAffinityTerm PodAffinityTerm
PodAntiAffinity
  1 requiredDuringSchedulingIgnoredDuringExecution? PodAffinityTerm[];
  2 preferredDuringSchedulingIgnoredDuringExecution? WeightedPodAffinityTerm[]
Toleration
  1 key? string; 2 operator? string; 3 value? string; 4 effect? string; 5 tolerationSeconds? *int64
HostAlias
  1 ip string; 2 hostnames? string[]
PodDNSConfig
  1 nameservers? string[]; 2 searches? string[]; 3 options? PodDNSConfigOption[]
PodDNSConfigOption
  1 name? string; 2 value? *string
PodReadinessGate
  1 conditionType string
TopologySpreadConstraint
  1 maxSkew int32; 2 topologyKey string; 3 whenUnsatisfiable string; 4 labelSelector? *LabelSelector;
  5 minDomains? *int32; 6 nodeAffinityPolicy? *string; 7 nodeTaintsPolicy? *string; 8 matchLabelKeys? string[]
PodOS
  1 name string
PodSchedulingGate
  1 name string
PodResourceClaim
  1 name string; 3 resourceClaimName? *string; 4 resourceClaimTemplateName? *string
PodStatus
  1 phase? string; 2 conditions? PodCondition[]; 3 message? string; 4 reason? string; 11 nominatedNodeName? string;
  5 hostIP? string; 16 hostIPs? HostIP[]; 6 podIP? string; 12 podIPs? PodIP[]; 7 startTime? *Time;
  10 initContainerStatuses? ContainerStatus[]; 8 containerStatuses? ContainerStatus[]; 9 qosClass? string;
  13 ephemeralContainerStatuses? ContainerStatus[]; 14 resize? string;
  15 resourceClaimStatuses? PodResourceClaimStatus[]
PodCondition
  1 type string; 2 status string; 3 lastProbeTime? Time; 4 lastTransitionTime? Time; 5 reason? string;
  6 message? string
HostIP
  1 ip string
PodIP
  1 ip string
PodResourceClaimStatus
  1 name string; 2 resourceClaimName? *string
PodTemplateSpec
  1 metadata? ObjectMeta; 2 spec? PodSpec
`;
