/** The schema of pod specs. */
import { container, ephemeralContainer } from '#engine/registry/kinds/shared/container.ts';
import { localObjectReference } from '#engine/registry/kinds/shared/references.ts';
import { resourceRequirements } from '#engine/registry/kinds/shared/resource-requirements.ts';
import {
  podSpecAffinitySchema,
  podTolerationSchema,
  topologySpreadConstraint,
} from '#engine/registry/kinds/shared/scheduling.ts';
import { podSecurityContext } from '#engine/registry/kinds/shared/security-context.ts';
import { templateMeta } from '#engine/registry/kinds/shared/template-meta.ts';
import { podVolumeSchema } from '#engine/registry/kinds/shared/volume.ts';
import {
  bool,
  type Infer,
  int32,
  int64,
  list,
  map,
  overrideOptions,
  obj,
  oneOf,
  quantity,
  str,
} from '#kube/schema-dsl.ts';

export const podDNSConfigOption = obj({
  name: str(),
  value: str(),
});

export const podDNSConfig = obj({
  nameservers: list(str(), { atomic: true }),
  options: list(podDNSConfigOption, { atomic: true }),
  searches: list(str(), { atomic: true }),
});

export const hostAlias = obj(
  {
    hostnames: list(str(), { atomic: true }),
    ip: str(),
  },
  { required: ['ip'] },
);

export const podOS = obj(
  {
    name: oneOf(['linux', 'windows']),
  },
  { required: ['name'] },
);

export const podReadinessGate = obj(
  {
    conditionType: str(),
  },
  { required: ['conditionType'] },
);

export const podResourceClaim = obj(
  {
    name: str(),
    resourceClaimName: str(),
    resourceClaimTemplateName: str(),
  },
  { required: ['name'] },
);

export const podSchedulingGate = obj(
  {
    name: str(),
  },
  { required: ['name'] },
);

export const podSpec = obj(
  {
    activeDeadlineSeconds: int64(),
    affinity: podSpecAffinitySchema,
    automountServiceAccountToken: bool(),
    containers: list(container, { mergeKey: 'name' }),
    dnsConfig: podDNSConfig,
    dnsPolicy: oneOf(['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'], {
      default: 'ClusterFirst',
    }),
    enableServiceLinks: bool(),
    ephemeralContainers: list(ephemeralContainer, { mergeKey: 'name' }),
    hostAliases: list(hostAlias, { mergeKey: 'ip' }),
    hostIPC: bool(),
    hostNetwork: bool(),
    hostPID: bool(),
    hostUsers: bool(),
    hostname: str(),
    imagePullSecrets: list(localObjectReference, { mergeKey: 'name' }),
    initContainers: list(container, { mergeKey: 'name' }),
    nodeName: str(),
    nodeSelector: map(str(), { atomic: true }),
    os: podOS,
    overhead: map(quantity()),
    preemptionPolicy: oneOf(['Never', 'PreemptLowerPriority']),
    priority: int32(),
    priorityClassName: str(),
    readinessGates: list(podReadinessGate, { atomic: true }),
    resourceClaims: list(podResourceClaim, { mergeKey: 'name', retainKeys: true }),
    resources: resourceRequirements,
    restartPolicy: oneOf(['Always', 'OnFailure', 'Never'], { default: 'Always' }),
    runtimeClassName: str(),
    schedulerName: str({ default: 'default-scheduler' }),
    schedulingGates: list(podSchedulingGate, { mergeKey: 'name' }),
    securityContext: overrideOptions(podSecurityContext, { default: {} }),
    serviceAccount: str(),
    serviceAccountName: str(),
    setHostnameAsFQDN: bool(),
    shareProcessNamespace: bool(),
    subdomain: str(),
    terminationGracePeriodSeconds: int64({ default: 30 }),
    tolerations: list(podTolerationSchema, { atomic: true }),
    topologySpreadConstraints: list(topologySpreadConstraint, {
      mergeKey: 'topologyKey',
      mapKeys: ['topologyKey', 'whenUnsatisfiable'],
    }),
    volumes: list(podVolumeSchema, { mergeKey: 'name', retainKeys: true }),
  },
  { required: ['containers'] },
);

export const podTemplateSpec = obj({
  metadata: templateMeta,
  spec: overrideOptions(podSpec, { default: {} }),
});

export type EnginePodSpec = Infer<typeof podSpec>;
export type PodTemplateSpec = Infer<typeof podTemplateSpec>;
