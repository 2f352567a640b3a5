/** The schema of the status that a node reports for a pod. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { probedCondition } from '#engine/registry/kinds/meta/condition.ts';
import { resourceRequirements } from '#engine/registry/kinds/pod-spec/resource-requirements.ts';
import { bool, int32, int64, list, map, overrideOptions, quantity, str, time } from '#kube/schema-dsl.ts';

const containerStateWaiting = apiType('core.v1.ContainerStateWaiting', 'The waiting state of a container.', {
  reason: optional(1, str(), 'Brief reason why the container is not running yet.'),
  message: optional(2, str(), 'Message about why the container is not running yet.'),
});

const containerStateRunning = apiType('core.v1.ContainerStateRunning', 'The running state of a container.', {
  startedAt: optional(1, time(), 'Time when the container started.'),
});

const containerStateTerminated = apiType('core.v1.ContainerStateTerminated', 'The terminated state of a container.', {
  exitCode: required(1, int32({ default: 0 }), 'Exit status of the last termination.'),
  signal: optional(2, int32(), 'Signal of the last termination.'),
  reason: optional(3, str(), 'Brief reason of the last termination.'),
  message: optional(4, str(), 'Message about the last termination.'),
  startedAt: optional(5, time(), 'Time when the previous execution started.'),
  finishedAt: optional(6, time(), 'Time when the container terminated.'),
  containerID: optional(7, str(), 'ID of the container in the format type://id.'),
});

const containerState = apiType('core.v1.ContainerState', 'The state of a container. At most one member is set.', {
  waiting: pointer(1, containerStateWaiting, 'Details of a waiting container.'),
  running: pointer(2, containerStateRunning, 'Details of a running container.'),
  terminated: pointer(3, containerStateTerminated, 'Details of a terminated container.'),
});

const resourceHealth = apiType('core.v1.ResourceHealth', 'The health of one device.', {
  resourceID: required(1, str(), 'Unique ID of the device.'),
  health: optional(2, str(), 'Health of the device: Healthy, Unhealthy or Unknown.'),
});

const resourceStatus = apiType('core.v1.ResourceStatus', 'The health of one resource of a container.', {
  name: required(1, str(), 'Name of the resource.'),
  resources: optional(2, list(resourceHealth, { mapKeys: ['resourceID'] }), 'Health of each device.'),
});

const linuxContainerUser = apiType('core.v1.LinuxContainerUser', 'The user identity of a process on Linux.', {
  uid: required(1, int64({ default: 0 }), 'Primary UID of the process.'),
  gid: required(2, int64({ default: 0 }), 'Primary GID of the process.'),
  supplementalGroups: optional(3, list(int64(), { atomic: true }), 'Supplemental GIDs of the process.'),
});

const containerUser = apiType('core.v1.ContainerUser', 'The user identity of a process.', {
  linux: pointer(1, linuxContainerUser, 'User identity of a process on Linux.'),
});

const volumeMountStatus = apiType('core.v1.VolumeMountStatus', 'The status of a volume mount.', {
  name: required(1, str({ default: '' }), 'Name of the volume.'),
  mountPath: required(2, str({ default: '' }), 'Path in the container.'),
  readOnly: optional(3, bool(), 'Whether the mount is read-only.'),
  recursiveReadOnly: pointer(4, str(), 'Whether the mount is recursively read-only: Disabled, IfPossible or Enabled.'),
});

export const containerStatus = apiType('core.v1.ContainerStatus', 'The status of a container.', {
  name: required(1, str({ default: '' }), 'Name of the container.'),
  state: optional(2, overrideOptions(containerState, { default: {} }), 'Current state of the container.'),
  lastState: optional(3, overrideOptions(containerState, { default: {} }), 'Last termination state of the container.'),
  ready: required(4, bool({ default: false }), 'Whether the container passes its readiness probe.'),
  restartCount: required(5, int32({ default: 0 }), 'Number of times the container was restarted.'),
  image: required(6, str({ default: '' }), 'Name of the image that the container runs.'),
  imageID: required(7, str({ default: '' }), 'ID of the image that the container runs.'),
  containerID: optional(8, str(), 'ID of the container in the format type://id.'),
  started: pointer(9, bool(), 'Whether the container has started and passed its startup probe.'),
  allocatedResources: optional(10, map(quantity()), 'Compute resources that the node has allocated to the container.'),
  resources: pointer(11, resourceRequirements, 'Resources of the running container.'),
  volumeMounts: optional(12, list(volumeMountStatus, { mergeKey: 'mountPath' }), 'Status of the volume mounts.'),
  user: pointer(13, containerUser, 'User identity of the first process of the container.'),
  allocatedResourcesStatus: optional(
    14,
    list(resourceStatus, { mergeKey: 'name' }),
    'Health of the resources allocated to the container.',
  ),
});

const ip = required(1, str(), 'IP address.');
const hostIP = apiType('core.v1.HostIP', 'An IP address of a host.', { ip });
const podIP = apiType('core.v1.PodIP', 'An IP address of a pod.', { ip });

const podCondition = probedCondition(
  'core.v1.PodCondition',
  'A condition of a pod.',
  'Type of the condition, such as Ready or PodScheduled.',
);

const podResourceClaimStatus = apiType('core.v1.PodResourceClaimStatus', 'The status of a resource claim of a pod.', {
  name: required(1, str(), "Name of the entry in the pod's resourceClaims."),
  resourceClaimName: pointer(2, str(), 'Name of the ResourceClaim that was created for the pod.'),
});

export const podStatusSchema = apiType('core.v1.PodStatus', 'The most recently observed status of a pod.', {
  phase: optional(1, str(), 'Phase of the pod: Pending, Running, Succeeded, Failed or Unknown.'),
  conditions: optional(2, list(podCondition, { mergeKey: 'type' }), 'Current service state of the pod.'),
  message: optional(3, str(), 'Human-readable message about the condition of the pod.'),
  reason: optional(4, str(), 'Brief CamelCase reason for the state of the pod.'),
  nominatedNodeName: optional(11, str(), 'Node where the pod will run once the pods it preempts are gone.'),
  hostIP: optional(5, str(), 'IP address of the node.'),
  hostIPs: optional(16, list(hostIP, { atomic: true, mergeKey: 'ip', mapKeys: [] }), 'All IP addresses of the node.'),
  podIP: optional(6, str(), 'IP address of the pod.'),
  podIPs: optional(12, list(podIP, { mergeKey: 'ip' }), 'All IP addresses of the pod.'),
  startTime: pointer(7, time(), 'Time when the kubelet acknowledged the pod.'),
  initContainerStatuses: optional(10, list(containerStatus, { atomic: true }), 'Status of each init container.'),
  containerStatuses: optional(8, list(containerStatus, { atomic: true }), 'Status of each container.'),
  qosClass: optional(
    9,
    str(),
    'Quality of service class, derived from requests and limits: Guaranteed, Burstable or BestEffort.',
  ),
  ephemeralContainerStatuses: optional(
    13,
    list(containerStatus, { atomic: true }),
    'Status of each ephemeral container.',
  ),
  resize: optional(14, str(), 'Status of a resize of the resources.'),
  resourceClaimStatuses: optional(
    15,
    list(podResourceClaimStatus, { mergeKey: 'name', retainKeys: true }),
    'Status of the resource claims.',
  ),
});
