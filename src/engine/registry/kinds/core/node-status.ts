/** The schema of the status that a node reports. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { conditionStatus, conditionTransition } from '#engine/registry/kinds/meta/condition.ts';
import { bool, int32, int64, list, map, overrideOptions, quantity, str, time } from '#kube/schema-dsl.ts';

const configMapNodeConfigSource = apiType('core.v1.ConfigMapNodeConfigSource', 'Deprecated.', {
  namespace: required(1, str(), 'Namespace of the ConfigMap.'),
  name: required(2, str(), 'Name of the ConfigMap.'),
  uid: optional(3, str(), 'UID of the ConfigMap.'),
  resourceVersion: optional(4, str(), 'Resource version of the ConfigMap.'),
  kubeletConfigKey: required(5, str(), 'Key of the ConfigMap that holds the kubelet configuration.'),
});

export const nodeConfigSource = apiType('core.v1.NodeConfigSource', 'Deprecated.', {
  configMap: pointer(2, configMapNodeConfigSource, 'Deprecated.'),
});

const nodeAddress = apiType('core.v1.NodeAddress', 'An address of a node.', {
  type: required(1, str({ default: '' }), 'Type of the address, such as Hostname or InternalIP.'),
  address: required(2, str({ default: '' }), 'The address.'),
});

const nodeCondition = apiType('core.v1.NodeCondition', 'A condition of a node.', {
  ...conditionStatus,
  lastHeartbeatTime: optional(3, time(), 'Last time the condition was reported.'),
  ...conditionTransition(4),
});

const nodeConfigStatus = apiType('core.v1.NodeConfigStatus', 'Deprecated.', {
  assigned: pointer(1, nodeConfigSource, 'Deprecated.'),
  active: pointer(2, nodeConfigSource, 'Deprecated.'),
  lastKnownGood: pointer(3, nodeConfigSource, 'Deprecated.'),
  error: optional(4, str(), 'Deprecated.'),
});

const daemonEndpoint = apiType('core.v1.DaemonEndpoint', 'The endpoint of a daemon.', {
  Port: required(1, int32({ default: 0 }), 'Port number.'),
});

const nodeDaemonEndpoints = apiType('core.v1.NodeDaemonEndpoints', 'Endpoints of daemons that run on a node.', {
  kubeletEndpoint: optional(1, overrideOptions(daemonEndpoint, { default: {} }), 'Endpoint of the kubelet.'),
});

const nodeFeatures = apiType('core.v1.NodeFeatures', 'Features that the CRI implementation supports.', {
  supplementalGroupsPolicy: pointer(1, bool(), 'Whether the node supports supplementalGroupsPolicy.'),
});

const containerImage = apiType('core.v1.ContainerImage', 'A container image.', {
  names: optional(1, list(str(), { atomic: true }), 'Names of the image.', { omitEmpty: false }),
  sizeBytes: optional(2, int64(), 'Size of the image in bytes.'),
});

const nodeSystemInfo = apiType('core.v1.NodeSystemInfo', 'IDs and versions that identify a node and its software.', {
  machineID: required(1, str({ default: '' }), 'Machine ID of the node.'),
  systemUUID: required(2, str({ default: '' }), 'System UUID of the node.'),
  bootID: required(3, str({ default: '' }), 'Boot ID of the node. Changes at each boot.'),
  kernelVersion: required(4, str({ default: '' }), 'Version of the kernel.'),
  osImage: required(5, str({ default: '' }), 'Operating system image of the node.'),
  containerRuntimeVersion: required(6, str({ default: '' }), 'Version of the container runtime.'),
  kubeletVersion: required(7, str({ default: '' }), 'Version of the kubelet.'),
  kubeProxyVersion: required(8, str({ default: '' }), 'Deprecated.'),
  operatingSystem: required(9, str({ default: '' }), 'Operating system of the node.'),
  architecture: required(10, str({ default: '' }), 'Architecture of the node.'),
});

const nodeRuntimeHandlerFeatures = apiType('core.v1.NodeRuntimeHandlerFeatures', 'Features of a runtime handler.', {
  recursiveReadOnlyMounts: pointer(1, bool(), 'Whether the handler supports recursive read-only mounts.'),
  userNamespaces: pointer(2, bool(), 'Whether the handler supports user namespaces.'),
});

const nodeRuntimeHandler = apiType('core.v1.NodeRuntimeHandler', 'A runtime handler of a node.', {
  name: optional(1, str(), 'Name of the handler. Empty for the default handler.', { omitEmpty: false }),
  features: pointer(2, nodeRuntimeHandlerFeatures, 'Supported features.'),
});

const attachedVolume = apiType('core.v1.AttachedVolume', 'A volume attached to a node.', {
  name: required(1, str({ default: '' }), 'Name of the volume.'),
  devicePath: required(2, str({ default: '' }), 'Path of the device.'),
});

export const nodeStatusSchema = apiType('core.v1.NodeStatus', 'The most recently observed status of a node.', {
  capacity: optional(1, map(quantity()), 'Total resources of the node.'),
  allocatable: optional(2, map(quantity()), 'Resources of the node that are available to pods.'),
  phase: optional(3, str(), 'Deprecated.'),
  conditions: optional(4, list(nodeCondition, { mergeKey: 'type' }), 'Current conditions of the node.'),
  addresses: optional(5, list(nodeAddress, { mergeKey: 'type' }), 'Addresses at which the node can be reached.'),
  daemonEndpoints: optional(
    6,
    overrideOptions(nodeDaemonEndpoints, { default: {} }),
    'Endpoints of daemons that run on the node.',
  ),
  nodeInfo: optional(
    7,
    overrideOptions(nodeSystemInfo, { default: {} }),
    'IDs and versions that identify the node and its software.',
  ),
  images: optional(8, list(containerImage, { atomic: true }), 'Container images on the node.'),
  volumesInUse: optional(9, list(str(), { atomic: true }), 'Attachable volumes that the node mounts.'),
  volumesAttached: optional(10, list(attachedVolume, { atomic: true }), 'Volumes attached to the node.'),
  config: pointer(11, nodeConfigStatus, 'Deprecated.'),
  runtimeHandlers: optional(12, list(nodeRuntimeHandler, { atomic: true }), 'Runtime handlers of the node.'),
  features: pointer(13, nodeFeatures, 'Features that the CRI implementation supports.'),
});
