/** The schemas of containers, init containers and ephemeral containers. */
import { apiType, inlined, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { envFromSource, envVar } from '#engine/registry/kinds/pod-spec/env.ts';
import { lifecycle, containerProbeSchema } from '#engine/registry/kinds/pod-spec/probe.ts';
import { resourceRequirements } from '#engine/registry/kinds/pod-spec/resource-requirements.ts';
import { securityContext } from '#engine/registry/kinds/pod-spec/security-context.ts';
import { bool, int32, list, overrideOptions, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const containerPort = apiType('core.v1.ContainerPort', 'A network port of a container.', {
  name: optional(1, str(), 'Name of the port, which services can refer to. Must be unique in the pod.'),
  hostPort: optional(2, int32(), 'Port number on the host.'),
  containerPort: required(3, int32(), "Port number on the pod's IP."),
  protocol: optional(4, oneOf(['SCTP', 'TCP', 'UDP'], { default: 'TCP' }), 'Protocol of the port: TCP, UDP or SCTP.'),
  hostIP: optional(5, str(), 'Host IP to bind the port to.'),
});

const containerResizePolicy = apiType(
  'core.v1.ContainerResizePolicy',
  'Whether resizing a resource restarts the container.',
  {
    resourceName: required(1, str(), 'Name of the resource: cpu or memory.'),
    restartPolicy: required(
      2,
      oneOf(['NotRequired', 'RestartContainer']),
      'Whether to restart the container: NotRequired or RestartContainer.',
    ),
  },
);

const volumeDevice = apiType('core.v1.VolumeDevice', 'A block device of a container.', {
  name: required(1, str(), 'Name of a PersistentVolumeClaim volume of the pod.'),
  devicePath: required(2, str(), 'Path of the device in the container.'),
});

const volumeMount = apiType('core.v1.VolumeMount', 'A mount of a volume in a container.', {
  name: required(1, str(), 'Name of a volume of the pod.'),
  readOnly: optional(2, bool(), 'Whether the mount is read-only.'),
  recursiveReadOnly: pointer(
    7,
    oneOf(['Disabled', 'Enabled', 'IfPossible']),
    'Whether read-only mounts are recursively read-only: Disabled, IfPossible or Enabled.',
  ),
  mountPath: required(3, str(), 'Path in the container.'),
  subPath: optional(4, str(), "Path in the volume to mount. Defaults to the volume's root."),
  mountPropagation: pointer(
    5,
    oneOf(['Bidirectional', 'HostToContainer', 'None']),
    'How mounts propagate between host and container: None, HostToContainer or Bidirectional.',
  ),
  subPathExpr: optional(
    6,
    str(),
    "Path in the volume to mount, with environment variables expanded. Defaults to the volume's root.",
  ),
});

/** The fields of containers and ephemeral containers. */
const containerFields = {
  name: required(1, str(), 'Name of the container. Must be unique in the pod.'),
  image: optional(2, str(), 'Name of the container image.'),
  command: optional(
    3,
    list(str(), { atomic: true }),
    "Command to run, without a shell. Defaults to the image's ENTRYPOINT.",
  ),
  args: optional(4, list(str(), { atomic: true }), "Arguments of the command. Defaults to the image's CMD."),
  workingDir: optional(5, str(), "Working directory of the command. Defaults to the image's."),
  ports: optional(
    6,
    list(containerPort, {
      mergeKey: 'containerPort',
      mapKeys: ['containerPort', 'protocol'],
    }),
    'Ports that the container exposes.',
  ),
  envFrom: optional(
    19,
    list(envFromSource, { atomic: true }),
    'ConfigMaps and Secrets whose keys become environment variables.',
  ),
  env: optional(7, list(envVar, { mergeKey: 'name' }), 'Environment variables of the container.'),
  resources: optional(
    8,
    overrideOptions(resourceRequirements, { default: {} }),
    'Compute resources that the container requires.',
  ),
  resizePolicy: optional(
    23,
    list(containerResizePolicy, { atomic: true }),
    'Whether resizing a resource restarts the container.',
  ),
  restartPolicy: pointer(
    24,
    oneOf(['Always']),
    'Restart policy of an init container. Always makes it run beside the other containers (a sidecar).',
  ),
  volumeMounts: optional(
    9,
    list(volumeMount, { mergeKey: 'mountPath' }),
    "Volumes to mount into the container's file system.",
  ),
  volumeDevices: optional(21, list(volumeDevice, { mergeKey: 'devicePath' }), 'Block devices that the container uses.'),
  livenessProbe: pointer(
    10,
    containerProbeSchema,
    'Periodic probe of liveness. The container is restarted if it fails.',
  ),
  readinessProbe: pointer(
    11,
    containerProbeSchema,
    'Periodic probe of readiness. The container is removed from services if it fails.',
  ),
  startupProbe: pointer(
    22,
    containerProbeSchema,
    'Probe of a successful start. Other probes run only after it succeeds.',
  ),
  lifecycle: pointer(12, lifecycle, 'Actions to run after the container starts and before it stops.'),
  terminationMessagePath: optional(
    13,
    str({ default: '/dev/termination-log' }),
    "File in the container that holds the container's termination message.",
  ),
  terminationMessagePolicy: optional(
    20,
    oneOf(['File', 'FallbackToLogsOnError'], { default: 'File' }),
    'Source of the termination message: File or FallbackToLogsOnError.',
  ),
  imagePullPolicy: optional(
    14,
    oneOf(['Always', 'IfNotPresent', 'Never']),
    'When to pull the image: Always, IfNotPresent or Never.',
  ),
  securityContext: pointer(15, securityContext, 'Security settings of the container. Override those of the pod.'),
  stdin: optional(16, bool(), 'Whether the container allocates a buffer for standard input.'),
  stdinOnce: optional(17, bool(), 'Whether standard input closes after the first client disconnects.'),
  tty: optional(18, bool(), 'Whether the container allocates a TTY. Requires stdin.'),
};

export const container = apiType(
  'core.v1.Container',
  'A single application container that runs in a pod.',
  containerFields,
);

/** A container that is added to a running pod to debug it. */
export const ephemeralContainer = apiType(
  'core.v1.EphemeralContainer',
  'A temporary container that is added to an existing pod, for example to debug it.',
  {
    ...inlined(1, 'core.v1.EphemeralContainerCommon', containerFields),
    targetContainerName: optional(
      2,
      str(),
      'Name of the container whose process namespace the ephemeral container joins.',
    ),
  },
);

export type Container = Infer<typeof container>;
