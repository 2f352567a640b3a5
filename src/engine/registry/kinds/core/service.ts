/**
 * Service. Addresses and node ports are allocated by admission/service-addresses/, endpoints are written by
 * controllers/endpoint-slice/.
 */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import {
  checkService,
  checkServiceUpdate,
  dropUnusedServiceFields,
} from '#engine/registry/kinds/core/service-rules.ts';
import { serviceSchema, type Service, type ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';
import { age, labelsText, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord } from '#kube/meta.ts';

const AFFINITY_SECONDS = 10_800;

export const services = defineKind({
  kind: 'Service',
  plural: 'services',
  namespaced: true,
  shortNames: ['svc'],
  categories: ['all'],
  nameRule: 'label1035',
  schema: serviceSchema,
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
  prepareForUpdate: dropUnusedServiceFields,
  validate: ({ spec }) => checkService(spec),
  validateUpdate: ({ spec }, old) => checkServiceUpdate(spec, old.spec),
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
