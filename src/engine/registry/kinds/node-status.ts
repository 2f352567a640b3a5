/** The schema of the status that a node reports. */
import { plainCondition } from '#engine/registry/kinds/shared/condition.ts';
import { bool, int32, int64, list, map, overrideOptions, obj, quantity, str, time } from '#kube/schema-dsl.ts';

const configMapNodeConfigSource = obj(
  {
    kubeletConfigKey: str(),
    name: str(),
    namespace: str(),
    resourceVersion: str(),
    uid: str(),
  },
  { required: ['namespace', 'name', 'kubeletConfigKey'] },
);

export const nodeConfigSource = obj({
  configMap: configMapNodeConfigSource,
});

const nodeAddress = obj(
  {
    address: str({ default: '' }),
    type: str({ default: '' }),
  },
  { required: ['type', 'address'] },
);

const nodeCondition = obj(
  { ...plainCondition.properties, lastHeartbeatTime: time() },
  { required: ['type', 'status'] },
);

const nodeConfigStatus = obj({
  active: nodeConfigSource,
  assigned: nodeConfigSource,
  error: str(),
  lastKnownGood: nodeConfigSource,
});

const daemonEndpoint = obj(
  {
    Port: int32({ default: 0 }),
  },
  { required: ['Port'] },
);

const nodeDaemonEndpoints = obj({
  kubeletEndpoint: overrideOptions(daemonEndpoint, { default: {} }),
});

const nodeFeatures = obj({
  supplementalGroupsPolicy: bool(),
});

const containerImage = obj({
  names: list(str(), { atomic: true }),
  sizeBytes: int64(),
});

const nodeSystemInfo = obj(
  {
    architecture: str({ default: '' }),
    bootID: str({ default: '' }),
    containerRuntimeVersion: str({ default: '' }),
    kernelVersion: str({ default: '' }),
    kubeProxyVersion: str({ default: '' }),
    kubeletVersion: str({ default: '' }),
    machineID: str({ default: '' }),
    operatingSystem: str({ default: '' }),
    osImage: str({ default: '' }),
    systemUUID: str({ default: '' }),
  },
  {
    required: [
      'machineID',
      'systemUUID',
      'bootID',
      'kernelVersion',
      'osImage',
      'containerRuntimeVersion',
      'kubeletVersion',
      'kubeProxyVersion',
      'operatingSystem',
      'architecture',
    ],
  },
);

const nodeRuntimeHandlerFeatures = obj({
  recursiveReadOnlyMounts: bool(),
  userNamespaces: bool(),
});

const nodeRuntimeHandler = obj({
  features: nodeRuntimeHandlerFeatures,
  name: str(),
});

const attachedVolume = obj(
  {
    devicePath: str({ default: '' }),
    name: str({ default: '' }),
  },
  { required: ['name', 'devicePath'] },
);

export const nodeStatusSchema = obj({
  addresses: list(nodeAddress, { mergeKey: 'type' }),
  allocatable: map(quantity()),
  capacity: map(quantity()),
  conditions: list(nodeCondition, { mergeKey: 'type' }),
  config: nodeConfigStatus,
  daemonEndpoints: overrideOptions(nodeDaemonEndpoints, { default: {} }),
  features: nodeFeatures,
  images: list(containerImage, { atomic: true }),
  nodeInfo: overrideOptions(nodeSystemInfo, { default: {} }),
  phase: str(),
  runtimeHandlers: list(nodeRuntimeHandler, { atomic: true }),
  volumesAttached: list(attachedVolume, { atomic: true }),
  volumesInUse: list(str(), { atomic: true }),
});
