/** What the node reports of a pod. */
import { resourceRequirements } from '#engine/registry/kinds/shared/resource-requirements.ts';
import { bool, int32, int64, list, map, noted, obj, quantity, str, time } from '#kube/schema-dsl.ts';

export const containerStateWaiting = obj({
  message: str(),
  reason: str(),
});

export const containerStateRunning = obj({
  startedAt: time(),
});

export const containerStateTerminated = obj(
  {
    containerID: str(),
    exitCode: int32({ default: 0 }),
    finishedAt: time(),
    message: str(),
    reason: str(),
    signal: int32(),
    startedAt: time(),
  },
  { required: ['exitCode'] },
);

export const containerState = obj({
  running: containerStateRunning,
  terminated: containerStateTerminated,
  waiting: containerStateWaiting,
});

export const resourceHealth = obj(
  {
    health: str(),
    message: str(),
    resourceID: str(),
  },
  { required: ['resourceID'] },
);

export const resourceStatus = obj(
  {
    name: str(),
    resources: list(resourceHealth, { mapKeys: ['resourceID'] }),
  },
  { required: ['name'] },
);

export const linuxContainerUser = obj(
  {
    gid: int64({ default: 0 }),
    supplementalGroups: list(int64(), { atomic: true }),
    uid: int64({ default: 0 }),
  },
  { required: ['uid', 'gid'] },
);

export const containerUser = obj({
  linux: linuxContainerUser,
});

export const imageVolumeStatus = obj(
  {
    imageRef: str(),
  },
  { required: ['imageRef'] },
);

export const volumeStatus = obj({
  image: imageVolumeStatus,
});

export const volumeMountStatus = obj(
  {
    mountPath: str({ default: '' }),
    name: str({ default: '' }),
    readOnly: bool(),
    recursiveReadOnly: str(),
    volumeStatus,
  },
  { required: ['name', 'mountPath'] },
);

export const containerStatus = obj(
  {
    allocatedResources: map(quantity()),
    allocatedResourcesStatus: list(resourceStatus, { mergeKey: 'name' }),
    containerID: str(),
    image: str({ default: '' }),
    imageID: str({ default: '' }),
    lastState: noted(containerState, { default: {} }),
    name: str({ default: '' }),
    ready: bool({ default: false }),
    resources: resourceRequirements,
    restartCount: int32({ default: 0 }),
    started: bool(),
    state: noted(containerState, { default: {} }),
    stopSignal: str(),
    user: containerUser,
    volumeMounts: list(volumeMountStatus, { mergeKey: 'mountPath' }),
  },
  { required: ['name', 'ready', 'restartCount', 'image', 'imageID'] },
);

export const podCondition = obj(
  {
    lastProbeTime: time(),
    lastTransitionTime: time(),
    message: str(),
    observedGeneration: int64(),
    reason: str(),
    status: str(),
    type: str(),
  },
  { required: ['type', 'status'] },
);

export const podIP = obj(
  {
    ip: str(),
  },
  { required: ['ip'] },
);

export const hostIP = obj(
  {
    ip: str(),
  },
  { required: ['ip'] },
);

export const podResourceClaimStatus = obj(
  {
    name: str(),
    resourceClaimName: str(),
  },
  { required: ['name'] },
);

export const containerExtendedResourceRequest = obj(
  {
    containerName: str(),
    requestName: str(),
    resourceName: str(),
  },
  { required: ['containerName', 'resourceName', 'requestName'] },
);

export const podExtendedResourceClaimStatus = obj(
  {
    requestMappings: list(containerExtendedResourceRequest, { atomic: true }),
    resourceClaimName: str(),
  },
  { required: ['requestMappings', 'resourceClaimName'] },
);

export const podStatus = obj({
  allocatedResources: map(quantity()),
  conditions: list(podCondition, { mergeKey: 'type' }),
  containerStatuses: list(containerStatus, { atomic: true }),
  ephemeralContainerStatuses: list(containerStatus, { atomic: true }),
  extendedResourceClaimStatus: podExtendedResourceClaimStatus,
  hostIP: str(),
  hostIPs: list(hostIP, { atomic: true, mergeKey: 'ip', mapKeys: [] }),
  initContainerStatuses: list(containerStatus, { atomic: true }),
  message: str(),
  nominatedNodeName: str(),
  observedGeneration: int64(),
  phase: str(),
  podIP: str(),
  podIPs: list(podIP, { mergeKey: 'ip' }),
  qosClass: str(),
  reason: str(),
  resize: str(),
  resourceClaimStatuses: list(podResourceClaimStatus, { mergeKey: 'name', retainKeys: true }),
  resources: resourceRequirements,
  startTime: time(),
});
