/** The schema of pod specs. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { container, ephemeralContainer } from '#engine/registry/kinds/pod-spec/container.ts';
import { localObjectReference } from '#engine/registry/kinds/core/references.ts';
import { resourceRequirements } from '#engine/registry/kinds/pod-spec/resource-requirements.ts';
import {
  podSpecAffinitySchema,
  podTolerationSchema,
  topologySpreadConstraint,
} from '#engine/registry/kinds/pod-spec/scheduling.ts';
import { podSecurityContext } from '#engine/registry/kinds/pod-spec/security-context.ts';
import { templateMeta } from '#engine/registry/kinds/meta/object-meta.ts';
import { podVolumeSchema } from '#engine/registry/kinds/volumes/volume.ts';
import { bool, type Infer, int32, int64, list, map, overrideOptions, oneOf, quantity, str } from '#kube/schema-dsl.ts';

const podDNSConfigOption = apiType('core.v1.PodDNSConfigOption', 'An option of the DNS resolver.', {
  name: optional(1, str(), 'Name of the option.'),
  value: pointer(2, str(), 'Value of the option.'),
});

const podDNSConfig = apiType('core.v1.PodDNSConfig', 'DNS settings of a pod.', {
  nameservers: optional(1, list(str(), { atomic: true }), 'IP addresses of name servers.'),
  searches: optional(2, list(str(), { atomic: true }), 'Search domains for host-name lookup.'),
  options: optional(3, list(podDNSConfigOption, { atomic: true }), 'Options of the resolver.'),
});

const hostAlias = apiType('core.v1.HostAlias', 'An IP address and its host names, for the hosts file of a pod.', {
  ip: required(1, str(), 'IP address.'),
  hostnames: optional(2, list(str(), { atomic: true }), 'Host names of the IP address.'),
});

const podOS = apiType('core.v1.PodOS', 'The operating system of a pod.', {
  name: required(1, oneOf(['linux', 'windows']), 'Name of the operating system: linux or windows.'),
});

const podReadinessGate = apiType('core.v1.PodReadinessGate', 'A condition that a pod needs to be ready.', {
  conditionType: required(1, str(), 'Type of the condition.'),
});

const podResourceClaim = apiType(
  'core.v1.PodResourceClaim',
  'A reference to a ResourceClaim, or to a template from which one is created for the pod.',
  {
    name: required(1, str(), 'Name by which containers refer to the claim.'),
    resourceClaimName: pointer(3, str(), 'Name of a ResourceClaim in the namespace of the pod.'),
    resourceClaimTemplateName: pointer(4, str(), 'Name of a ResourceClaimTemplate in the namespace of the pod.'),
  },
);

const podSchedulingGate = apiType('core.v1.PodSchedulingGate', 'A gate that keeps a pod from being scheduled.', {
  name: required(1, str(), 'Name of the gate. Must be unique in the pod.'),
});

export const podSpec = apiType('core.v1.PodSpec', 'Desired behavior of a pod.', {
  volumes: optional(
    1,
    list(podVolumeSchema, { mergeKey: 'name', retainKeys: true }),
    'Volumes that the containers may mount.',
  ),
  initContainers: optional(
    20,
    list(container, { mergeKey: 'name' }),
    'Containers that run to completion, in order, before the other containers start.',
  ),
  containers: required(2, list(container, { mergeKey: 'name' }), 'Containers of the pod. There must be at least one.'),
  ephemeralContainers: optional(
    34,
    list(ephemeralContainer, { mergeKey: 'name' }),
    'Temporary containers added to the running pod, for example to debug it.',
  ),
  restartPolicy: optional(
    3,
    oneOf(['Always', 'OnFailure', 'Never'], { default: 'Always' }),
    'Restart policy of the containers: Always, OnFailure or Never.',
  ),
  terminationGracePeriodSeconds: pointer(
    4,
    int64({ default: 30 }),
    'Seconds that the pod has to terminate gracefully.',
  ),
  activeDeadlineSeconds: pointer(5, int64(), 'Seconds after its start when the pod is stopped and marked as failed.'),
  dnsPolicy: optional(
    6,
    oneOf(['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'], {
      default: 'ClusterFirst',
    }),
    'DNS policy of the pod: ClusterFirst, ClusterFirstWithHostNet, Default or None.',
  ),
  nodeSelector: optional(
    7,
    map(str(), { atomic: true }),
    'Labels that a node must have for the pod to be scheduled onto it.',
  ),
  serviceAccountName: optional(8, str(), 'Name of the ServiceAccount that runs the pod.'),
  serviceAccount: optional(9, str(), 'Deprecated: use serviceAccountName.'),
  automountServiceAccountToken: pointer(
    21,
    bool(),
    'Whether to mount the token of the service account into the containers.',
  ),
  nodeName: optional(10, str(), 'Name of the node that the pod is scheduled onto.'),
  hostNetwork: optional(11, bool(), "Whether to use the host's network namespace."),
  hostPID: optional(12, bool(), "Whether to use the host's PID namespace."),
  hostIPC: optional(13, bool(), "Whether to use the host's IPC namespace."),
  shareProcessNamespace: pointer(27, bool(), 'Whether all containers share one process namespace.'),
  securityContext: pointer(
    14,
    overrideOptions(podSecurityContext, { default: {} }),
    'Security settings of the pod and defaults for its containers.',
  ),
  imagePullSecrets: optional(
    15,
    list(localObjectReference, { mergeKey: 'name' }),
    'Secrets with credentials for pulling images.',
  ),
  hostname: optional(16, str(), "Hostname of the pod. Defaults to the pod's name."),
  subdomain: optional(
    17,
    str(),
    'Subdomain of the pod, whose domain name is then <hostname>.<subdomain>.<namespace>.svc.<cluster domain>.',
  ),
  affinity: pointer(18, podSpecAffinitySchema, 'Scheduling constraints of the pod.'),
  schedulerName: optional(19, str({ default: 'default-scheduler' }), 'Name of the scheduler that schedules the pod.'),
  tolerations: optional(22, list(podTolerationSchema, { atomic: true }), 'Taints that the pod tolerates.'),
  hostAliases: optional(23, list(hostAlias, { mergeKey: 'ip' }), "Entries to add to the pod's hosts file."),
  priorityClassName: optional(24, str(), 'Name of the PriorityClass of the pod.'),
  priority: pointer(25, int32(), 'Priority of the pod. Populated from priorityClassName.'),
  dnsConfig: pointer(26, podDNSConfig, 'DNS settings, merged with those that dnsPolicy generates.'),
  readinessGates: optional(
    28,
    list(podReadinessGate, { atomic: true }),
    'Conditions that must be true, in addition to the readiness of all containers, for the pod to be ready.',
  ),
  runtimeClassName: pointer(29, str(), 'Name of the RuntimeClass that runs the pod.'),
  enableServiceLinks: pointer(30, bool(), 'Whether to set environment variables for the services of the namespace.'),
  preemptionPolicy: pointer(
    31,
    oneOf(['Never', 'PreemptLowerPriority']),
    'Whether the pod may preempt pods of lower priority: PreemptLowerPriority or Never.',
  ),
  overhead: optional(
    32,
    map(quantity()),
    'Resources that running the pod takes in addition to those of its containers.',
  ),
  topologySpreadConstraints: optional(
    33,
    list(topologySpreadConstraint, {
      mergeKey: 'topologyKey',
      mapKeys: ['topologyKey', 'whenUnsatisfiable'],
    }),
    'How pods spread across topology domains.',
  ),
  setHostnameAsFQDN: pointer(35, bool(), "Whether the pod's hostname is its fully qualified domain name."),
  os: pointer(36, podOS, 'Operating system of the containers.'),
  hostUsers: pointer(37, bool(), "Whether to use the host's user namespace."),
  schedulingGates: optional(
    38,
    list(podSchedulingGate, { mergeKey: 'name' }),
    'Gates that must all be removed before the pod is scheduled.',
  ),
  resourceClaims: optional(
    39,
    list(podResourceClaim, { mergeKey: 'name', retainKeys: true }),
    'Resource claims that must be allocated before the pod starts.',
  ),
  resources: pointer(40, resourceRequirements, 'Compute resources of the pod as a whole.'),
});

export const podTemplateSpec = apiType('core.v1.PodTemplateSpec', 'A template from which pods are created.', {
  metadata: optional(1, templateMeta, 'Labels and annotations of the pods.'),
  spec: optional(2, overrideOptions(podSpec, { default: {} }), 'Desired behavior of the pods.'),
});

export type EnginePodSpec = Infer<typeof podSpec>;
export type PodTemplateSpec = Infer<typeof podTemplateSpec>;
