/** The schemas of containers, init containers and ephemeral containers. */
import { envFromSource, envVar } from '#engine/registry/kinds/shared/env.ts';
import { lifecycle, containerProbeSchema } from '#engine/registry/kinds/shared/probe.ts';
import { resourceRequirements } from '#engine/registry/kinds/shared/resource-requirements.ts';
import { securityContext } from '#engine/registry/kinds/shared/security-context.ts';
import { bool, int32, list, overrideOptions, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

export const containerPort = obj(
  {
    containerPort: int32(),
    hostIP: str(),
    hostPort: int32(),
    name: str(),
    protocol: oneOf(['SCTP', 'TCP', 'UDP'], { default: 'TCP' }),
  },
  { required: ['containerPort'] },
);

export const containerResizePolicy = obj(
  {
    resourceName: str(),
    restartPolicy: oneOf(['NotRequired', 'RestartContainer']),
  },
  { required: ['resourceName', 'restartPolicy'] },
);

export const volumeDevice = obj(
  {
    devicePath: str(),
    name: str(),
  },
  { required: ['name', 'devicePath'] },
);

export const volumeMount = obj(
  {
    mountPath: str(),
    mountPropagation: oneOf(['Bidirectional', 'HostToContainer', 'None']),
    name: str(),
    readOnly: bool(),
    recursiveReadOnly: oneOf(['Disabled', 'Enabled', 'IfPossible']),
    subPath: str(),
    subPathExpr: str(),
  },
  { required: ['name', 'mountPath'] },
);

export const container = obj(
  {
    args: list(str(), { atomic: true }),
    command: list(str(), { atomic: true }),
    env: list(envVar, { mergeKey: 'name' }),
    envFrom: list(envFromSource, { atomic: true }),
    image: str(),
    imagePullPolicy: oneOf(['Always', 'IfNotPresent', 'Never']),
    lifecycle,
    livenessProbe: containerProbeSchema,
    name: str(),
    ports: list(containerPort, {
      mergeKey: 'containerPort',
      mapKeys: ['containerPort', 'protocol'],
    }),
    readinessProbe: containerProbeSchema,
    resizePolicy: list(containerResizePolicy, { atomic: true }),
    resources: overrideOptions(resourceRequirements, { default: {} }),
    restartPolicy: oneOf(['Always']),
    securityContext,
    startupProbe: containerProbeSchema,
    stdin: bool(),
    stdinOnce: bool(),
    terminationMessagePath: str({ default: '/dev/termination-log' }),
    terminationMessagePolicy: oneOf(['File', 'FallbackToLogsOnError'], { default: 'File' }),
    tty: bool(),
    volumeDevices: list(volumeDevice, { mergeKey: 'devicePath' }),
    volumeMounts: list(volumeMount, { mergeKey: 'mountPath' }),
    workingDir: str(),
  },
  { required: ['name'] },
);

/** A container that is added to a running pod to debug it. */
export const ephemeralContainer = obj({ ...container.properties, targetContainerName: str() }, { required: ['name'] });

export type Container = Infer<typeof container>;
