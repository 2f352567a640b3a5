/** Service. Stored, defaulted and validated, but not routed: there is no service network. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, labelsText, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { coreConditionSchema } from '#engine/registry/kinds/shared/condition.ts';
import {
  checkImmutableValue,
  checkPort,
  checkPortOrName,
  checkName,
  checkUnique,
} from '#engine/registry/kinds/shared/formats.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, requiredValue } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { bool, type Infer, int32, intOrString, list, map, overrideOptions, obj, oneOf, str } from '#kube/schema-dsl.ts';

const servicePort = obj(
  {
    appProtocol: str(),
    name: str(),
    nodePort: int32(),
    port: int32(),
    protocol: oneOf(['SCTP', 'TCP', 'UDP'], { default: 'TCP' }),
    targetPort: intOrString(),
  },
  { required: ['port'] },
);

const clientIPConfig = obj({
  timeoutSeconds: int32(),
});

const sessionAffinityConfig = obj({
  clientIP: clientIPConfig,
});

const serviceSpec = obj({
  allocateLoadBalancerNodePorts: bool(),
  clusterIP: str(),
  clusterIPs: list(str(), { atomic: true }),
  externalIPs: list(str(), { atomic: true }),
  externalName: str(),
  externalTrafficPolicy: oneOf(['Cluster', 'Local']),
  healthCheckNodePort: int32(),
  internalTrafficPolicy: oneOf(['Cluster', 'Local']),
  ipFamilies: list(oneOf(['IPv4', 'IPv6']), { atomic: true }),
  ipFamilyPolicy: oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack']),
  loadBalancerClass: str(),
  loadBalancerIP: str(),
  loadBalancerSourceRanges: list(str(), { atomic: true }),
  ports: list(servicePort, { mergeKey: 'port', mapKeys: ['port', 'protocol'] }),
  publishNotReadyAddresses: bool(),
  selector: map(str(), { atomic: true }),
  sessionAffinity: oneOf(['ClientIP', 'None'], { default: 'None' }),
  sessionAffinityConfig,
  trafficDistribution: str(),
  type: oneOf(['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'], { default: 'ClusterIP' }),
});

const portStatus = obj(
  {
    error: str(),
    port: int32(),
    protocol: str(),
  },
  { required: ['port', 'protocol'] },
);

const loadBalancerIngress = obj({
  hostname: str(),
  ip: str(),
  ipMode: str(),
  ports: list(portStatus, { atomic: true }),
});

const loadBalancerStatus = obj({
  ingress: list(loadBalancerIngress, { atomic: true }),
});

const serviceStatus = obj({
  conditions: list(coreConditionSchema, { mergeKey: 'type' }),
  loadBalancer: overrideOptions(loadBalancerStatus, { default: {} }),
});

const service = obj(
  {
    spec: overrideOptions(serviceSpec, { default: {} }),
    status: overrideOptions(serviceStatus, { default: {} }),
  },
  { required: ['spec'] },
);

type Service = KubeObject & Infer<typeof service>;
type ServiceSpec = Infer<typeof serviceSpec>;

const AFFINITY_SECONDS = 10_800;

export const services = defineKind({
  kind: 'Service',
  plural: 'services',
  namespaced: true,
  shortNames: ['svc'],
  categories: ['all'],
  nameRule: 'label1035',
  schema: service,
  columns: [
    { name: 'Type', value: ({ spec }) => spec.type ?? '' },
    { name: 'Cluster-IP', value: ({ spec }) => spec.clusterIPs?.[0] ?? spec.clusterIP ?? NONE_TEXT },
    { name: 'External-IP', value: externalIp },
    { name: 'Port(s)', value: ({ spec }) => portsText(spec) },
    age,
    { name: 'Selector', priority: 1, value: ({ spec }) => labelsText(spec.selector) },
  ],
  status: true,
  selectableFields: {
    'spec.clusterIP': ({ spec }) => spec.clusterIP ?? '',
    'spec.type': ({ spec }) => spec.type ?? '',
  },
  defaults({ spec }) {
    if (!isRecord(spec)) return;
    for (const port of records(spec.ports)) {
      if (port.port) port.targetPort ||= port.port;
    }
    if (spec.sessionAffinity === 'ClientIP') {
      spec.sessionAffinityConfig ??= { clientIP: { timeoutSeconds: AFFINITY_SECONDS } };
    }
    if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ??= 'Cluster';
    if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') spec.externalTrafficPolicy ??= 'Cluster';
    if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true;
    if (spec.clusterIP) spec.clusterIPs ??= [spec.clusterIP];
  },
  validate: ({ spec }) => checkService(spec),
  validateUpdate: ({ spec }, old) =>
    old.spec.type === 'ExternalName' || spec.type === 'ExternalName' || !old.spec.clusterIP
      ? []
      : checkImmutableValue('spec.clusterIPs[0]', spec.clusterIP, old.spec.clusterIP),
});

function externalIp({ spec, status }: Service): string {
  const { type, externalName, externalIPs = [] } = spec;
  if (type === 'ExternalName') return externalName ?? '';
  if (type !== 'LoadBalancer') return externalIPs.length === 0 ? NONE_TEXT : externalIPs.join(',');
  const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '');
  const given = [...new Set(ingress)].filter((address) => address !== '').sort();
  return [...given, ...externalIPs].join(',') || '<pending>';
}

function portsText({ ports = [] }: ServiceSpec): string {
  const texts = ports.map(({ port, nodePort, protocol = 'TCP' }) =>
    nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
  );
  return texts.join(',') || NONE_TEXT;
}

function checkService(spec: ServiceSpec): FieldError[] {
  const { type, ports = [], clusterIP, externalName } = spec;
  const errors: FieldError[] = [];
  const headless = clusterIP === 'None';
  if (ports.length === 0 && !headless && type !== 'ExternalName') errors.push(requiredValue('spec.ports'));
  if (type === 'ExternalName' && !externalName) errors.push(requiredValue('spec.externalName'));
  for (const [i, { name, port, targetPort }] of ports.entries()) {
    const field = `spec.ports[${i}]`;
    if (name) errors.push(...checkName(`${field}.name`, name, 'label'));
    else if (ports.length > 1) errors.push(requiredValue(`${field}.name`));
    errors.push(...checkPort(`${field}.port`, port));
    if (targetPort !== undefined) errors.push(...checkPortOrName(`${field}.targetPort`, targetPort));
  }
  const names = ports.map(({ name = '' }, i) => [`spec.ports[${i}].name`, name] as const);
  return [...errors, ...checkUnique(names.filter(([, name]) => name !== ''))];
}
