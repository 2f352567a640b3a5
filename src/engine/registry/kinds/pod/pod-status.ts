/** The schema of the status that a node reports for a pod. */
import { probedCondition } from '#engine/registry/kinds/shared/condition.ts';
import { resourceRequirements } from '#engine/registry/kinds/shared/resource-requirements.ts';
import { bool, int32, int64, list, map, overrideOptions, obj, quantity, str, time } from '#kube/schema-dsl.ts';

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

export const volumeMountStatus = obj(
  {
    mountPath: str({ default: '' }),
    name: str({ default: '' }),
    readOnly: bool(),
    recursiveReadOnly: str(),
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
    lastState: overrideOptions(containerState, { default: {} }),
    name: str({ default: '' }),
    ready: bool({ default: false }),
    resources: resourceRequirements,
    restartCount: int32({ default: 0 }),
    started: bool(),
    state: overrideOptions(containerState, { default: {} }),
    user: containerUser,
    volumeMounts: list(volumeMountStatus, { mergeKey: 'mountPath' }),
  },
  { required: ['name', 'ready', 'restartCount', 'image', 'imageID'] },
);

const ipAddress = obj(
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

export const podStatusSchema = obj({
  conditions: list(probedCondition, { mergeKey: 'type' }),
  containerStatuses: list(containerStatus, { atomic: true }),
  ephemeralContainerStatuses: list(containerStatus, { atomic: true }),
  hostIP: str(),
  hostIPs: list(ipAddress, { atomic: true, mergeKey: 'ip', mapKeys: [] }),
  initContainerStatuses: list(containerStatus, { atomic: true }),
  message: str(),
  nominatedNodeName: str(),
  phase: str(),
  podIP: str(),
  podIPs: list(ipAddress, { mergeKey: 'ip' }),
  qosClass: str(),
  reason: str(),
  resize: str(),
  resourceClaimStatuses: list(podResourceClaimStatus, { mergeKey: 'name', retainKeys: true }),
  startTime: time(),
});
