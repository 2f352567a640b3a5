import { domain } from '#api/domain/domain.ts';
import { network } from '#api/domain/interface.ts';
import { probeSchema } from '#api/domain/probe.ts';
import { affinitySchema, tolerationSchema } from '#api/domain/placement.ts';
import { EVICTION_STRATEGIES } from '#api/kubevirt/kind.ts';
import { vmiVolumeSchema } from '#api/domain/volume.ts';
import { int64, list, map, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

export const vmiSpec = obj(
  {
    domain,
    volumes: list(vmiVolumeSchema, { maxItems: 256 }),
    networks: list(network, { maxItems: 256 }),
    terminationGracePeriodSeconds: int64({
      minimum: 0,
      description: 'Time that the guest has to shut down before it is switched off. Defaults to 30.',
    }),
    livenessProbe: probeSchema,
    readinessProbe: probeSchema,
    startStrategy: oneOf(['Paused']),
    evictionStrategy: oneOf(EVICTION_STRATEGIES),
    nodeSelector: map(str()),
    affinity: affinitySchema,
    tolerations: list(tolerationSchema, { description: 'Tolerations, as in a Pod.' }),
    priorityClassName: str(),
    schedulerName: str(),
    architecture: oneOf(['amd64']),
    hostname: str({ maxLength: 63 }),
    subdomain: str({ maxLength: 63 }),
  },
  {
    required: ['domain'],
    description: 'The hardware of the machine, its volumes and networks, and its scheduling constraints.',
  },
);

export type VmiSpec = Infer<typeof vmiSpec>;
export const DEFAULT_GRACE_SECONDS = 30;
