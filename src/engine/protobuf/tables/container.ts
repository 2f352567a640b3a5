/** Containers, their state and their probes. Notation: message-table.ts. */
export const CONTAINER_TABLE = `
ObjectFieldSelector
  1 apiVersion? string; 2 fieldPath string
ResourceFieldSelector
  1 containerName? string; 2 resource string; 3 divisor? Quantity
Container
  1 name string; 2 image? string; 3 command? string[]; 4 args? string[]; 5 workingDir? string;
  6 ports? ContainerPort[]; 19 envFrom? EnvFromSource[]; 7 env? EnvVar[]; 8 resources? ResourceRequirements;
  23 resizePolicy? ContainerResizePolicy[]; 24 restartPolicy? *string; 9 volumeMounts? VolumeMount[];
  21 volumeDevices? VolumeDevice[]; 10 livenessProbe? *Probe; 11 readinessProbe? *Probe; 22 startupProbe? *Probe;
  12 lifecycle? *Lifecycle; 13 terminationMessagePath? string; 20 terminationMessagePolicy? string;
  14 imagePullPolicy? string; 15 securityContext? *SecurityContext; 16 stdin? bool; 17 stdinOnce? bool; 18 tty? bool
ContainerPort
  1 name? string; 2 hostPort? int32; 3 containerPort int32; 4 protocol? string; 5 hostIP? string
EnvFromSource
  1 prefix? string; 2 configMapRef? *ConfigMapEnvSource; 3 secretRef? *SecretEnvSource
ConfigMapEnvSource
  1 ...LocalObjectReference; 2 optional? *bool
SecretEnvSource
  1 ...LocalObjectReference; 2 optional? *bool
EnvVar
  1 name string; 2 value? string; 3 valueFrom? *EnvVarSource
EnvVarSource
  1 fieldRef? *ObjectFieldSelector; 2 resourceFieldRef? *ResourceFieldSelector;
  3 configMapKeyRef? *ConfigMapKeySelector; 4 secretKeyRef? *SecretKeySelector
ConfigMapKeySelector
  1 ...LocalObjectReference; 2 key string; 3 optional? *bool
SecretKeySelector
  1 ...LocalObjectReference; 2 key string; 3 optional? *bool
ResourceRequirements
  1 limits? Quantity{}; 2 requests? Quantity{}; 3 claims? ResourceClaim[]
ResourceClaim
  1 name string; 2 request? string
ContainerResizePolicy
  1 resourceName string; 2 restartPolicy string
VolumeMount
  1 name string; 2 readOnly? bool; 7 recursiveReadOnly? *string; 3 mountPath string; 4 subPath? string;
  5 mountPropagation? *string; 6 subPathExpr? string
VolumeDevice
  1 name string; 2 devicePath string
Probe
  1 ...ProbeHandler; 2 initialDelaySeconds? int32; 3 timeoutSeconds? int32; 4 periodSeconds? int32;
  5 successThreshold? int32; 6 failureThreshold? int32; 7 terminationGracePeriodSeconds? *int64
ProbeHandler
  1 exec? *ExecAction; 2 httpGet? *HTTPGetAction; 3 tcpSocket? *TCPSocketAction; 4 grpc? *GRPCAction
ExecAction
  1 command? string[]
HTTPGetAction
  1 path? string; 2 port IntOrString; 3 host? string; 4 scheme? string; 5 httpHeaders? HTTPHeader[]
HTTPHeader
  1 name string; 2 value string
TCPSocketAction
  1 port IntOrString; 2 host? string
GRPCAction
  1 port int32; 2 service *string
Lifecycle
  1 postStart? *LifecycleHandler; 2 preStop? *LifecycleHandler
LifecycleHandler
  1 exec? *ExecAction; 2 httpGet? *HTTPGetAction; 3 tcpSocket? *TCPSocketAction; 4 sleep? *SleepAction
SleepAction
  1 seconds int64
SecurityContext
  1 capabilities? *Capabilities; 2 privileged? *bool; 3 seLinuxOptions? *SELinuxOptions;
  10 windowsOptions? *WindowsSecurityContextOptions; 4 runAsUser? *int64; 8 runAsGroup? *int64; 5 runAsNonRoot? *bool;
  6 readOnlyRootFilesystem? *bool; 7 allowPrivilegeEscalation? *bool; 9 procMount? *string;
  11 seccompProfile? *SeccompProfile; 12 appArmorProfile? *AppArmorProfile
Capabilities
  1 add? string[]; 2 drop? string[]
SELinuxOptions
  1 user? string; 2 role? string; 3 type? string; 4 level? string
WindowsSecurityContextOptions
  1 gmsaCredentialSpecName? *string; 2 gmsaCredentialSpec? *string; 3 runAsUserName? *string; 4 hostProcess? *bool
SeccompProfile
  1 type string; 2 localhostProfile? *string
AppArmorProfile
  1 type string; 2 localhostProfile? *string
EphemeralContainer
  1 ...EphemeralContainerCommon; 2 targetContainerName? string
EphemeralContainerCommon
  1 name string; 2 image? string; 3 command? string[]; 4 args? string[]; 5 workingDir? string;
  6 ports? ContainerPort[]; 19 envFrom? EnvFromSource[]; 7 env? EnvVar[]; 8 resources? ResourceRequirements;
  23 resizePolicy? ContainerResizePolicy[]; 24 restartPolicy? *string; 9 volumeMounts? VolumeMount[];
  21 volumeDevices? VolumeDevice[]; 10 livenessProbe? *Probe; 11 readinessProbe? *Probe; 22 startupProbe? *Probe;
  12 lifecycle? *Lifecycle; 13 terminationMessagePath? string; 20 terminationMessagePolicy? string;
  14 imagePullPolicy? string; 15 securityContext? *SecurityContext; 16 stdin? bool; 17 stdinOnce? bool; 18 tty? bool
ContainerStatus
  1 name string; 2 state? ContainerState; 3 lastState? ContainerState; 4 ready bool; 5 restartCount int32;
  6 image string; 7 imageID string; 8 containerID? string; 9 started? *bool; 10 allocatedResources? Quantity{};
  11 resources? *ResourceRequirements; 12 volumeMounts? VolumeMountStatus[]; 13 user? *ContainerUser;
  14 allocatedResourcesStatus? ResourceStatus[]
ContainerState
  1 waiting? *ContainerStateWaiting; 2 running? *ContainerStateRunning; 3 terminated? *ContainerStateTerminated
ContainerStateWaiting
  1 reason? string; 2 message? string
ContainerStateRunning
  1 startedAt? Time
ContainerStateTerminated
  1 exitCode int32; 2 signal? int32; 3 reason? string; 4 message? string; 5 startedAt? Time; 6 finishedAt? Time;
  7 containerID? string
VolumeMountStatus
  1 name string; 2 mountPath string; 3 readOnly? bool; 4 recursiveReadOnly? *string
ContainerUser
  1 linux? *LinuxContainerUser
LinuxContainerUser
  1 uid int64; 2 gid int64; 3 supplementalGroups? int64[]
ResourceStatus
  1 name string; 2 resources? ResourceHealth[]
ResourceHealth
  1 resourceID string; 2 health? string
`;
