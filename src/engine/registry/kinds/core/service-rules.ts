/** The rules of Services that the schema cannot express, with Kubernetes' messages. Pure. */
import { isIP } from 'node:net';
import type { Service, ServicePortSpec, ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';
import { checkName, checkPort, checkPortOrName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { deepEqual } from '#kube/deep.ts';
import { duplicateValue, type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';

/** The clusterIP of a Service without an address of its own. */
export const HEADLESS = 'None';
const NOT_EXTERNAL = 'may not be set for ExternalName services';
const FIXED = 'may not change once set';

/** Reports whether Services of this type have node ports. */
export const hasNodePorts = ({ type }: ServiceSpec): boolean => type === 'NodePort' || type === 'LoadBalancer';

/** Reports whether a node port for health checks belongs to the Service. */
export const hasHealthCheckPort = ({ type, externalTrafficPolicy }: ServiceSpec): boolean =>
  type === 'LoadBalancer' && externalTrafficPolicy === 'Local';

export const isHeadless = ({ clusterIP }: ServiceSpec): boolean => clusterIP === HEADLESS;

export function checkService(spec: ServiceSpec): FieldError[] {
  const { type, ports = [], externalName } = spec;
  const errors: FieldError[] = [];
  if (ports.length === 0 && !isHeadless(spec) && type !== 'ExternalName') errors.push(requiredValue('spec.ports'));
  if (type === 'ExternalName') {
    if (!externalName) errors.push(requiredValue('spec.externalName'));
    errors.push(...checkNoAddresses(spec));
  }
  if (isHeadless(spec) && (type === 'NodePort' || type === 'LoadBalancer')) {
    errors.push(invalidValue('spec.clusterIPs[0]', HEADLESS, `may not be set to 'None' for ${type} services`));
  }
  return [...errors, ...ports.flatMap((port, i) => checkServicePort(spec, port, i)), ...checkDistinctPorts(ports)];
}

function checkServicePort(
  { type, ports = [] }: ServiceSpec,
  { name, port, targetPort, nodePort }: ServicePortSpec,
  i: number,
): FieldError[] {
  const field = `spec.ports[${i}]`;
  const errors: FieldError[] = [];
  if (name) errors.push(...checkName(`${field}.name`, name, 'label'));
  else if (ports.length > 1) errors.push(requiredValue(`${field}.name`));
  errors.push(...checkPort(`${field}.port`, port));
  if (targetPort !== undefined) errors.push(...checkPortOrName(`${field}.targetPort`, targetPort));
  if (nodePort && (type === 'ClusterIP' || type === 'ExternalName')) {
    errors.push(forbiddenField(`${field}.nodePort`, `may not be used when \`type\` is '${type}'`));
  }
  return errors;
}

function checkDistinctPorts(ports: readonly ServicePortSpec[]): FieldError[] {
  const names = ports.map(({ name = '' }, i) => [`spec.ports[${i}].name`, name] as const);
  const errors = checkUnique(names.filter(([, name]) => name !== ''));
  const seen = new Set<string>();
  for (const [i, { port, nodePort, protocol = 'TCP' }] of ports.entries()) {
    const own = `${protocol} ${port}`;
    if (seen.has(own)) errors.push(duplicateValue(`spec.ports[${i}]`, { protocol, port }));
    seen.add(own);
    if (!nodePort) continue;
    const onNode = `${protocol} node ${nodePort}`;
    if (seen.has(onNode)) errors.push(duplicateValue(`spec.ports[${i}].nodePort`, nodePort));
    seen.add(onNode);
  }
  return errors;
}

function checkNoAddresses({ clusterIP, clusterIPs = [], ipFamilies = [], ipFamilyPolicy }: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (clusterIPs.length > 0 || clusterIP) errors.push(forbiddenField('spec.clusterIPs', NOT_EXTERNAL));
  if (ipFamilies.length > 0) errors.push(forbiddenField('spec.ipFamilies', NOT_EXTERNAL));
  if (ipFamilyPolicy !== undefined) errors.push(forbiddenField('spec.ipFamilyPolicy', NOT_EXTERNAL));
  return errors;
}

/** Checks clusterIP, clusterIPs and ipFamilies against each other, before addresses are allocated. */
export function checkAddressFields(spec: ServiceSpec): FieldError[] {
  const { type, clusterIP = '', clusterIPs = [], ipFamilies = [] } = spec;
  if (type === 'ExternalName') return [];
  const errors: FieldError[] = [];
  if (clusterIP !== '') {
    if (clusterIPs.length === 0) errors.push(requiredValue('spec.clusterIPs'));
    else if (clusterIPs[0] !== clusterIP) {
      errors.push(invalidValue('spec.clusterIPs', clusterIPs, 'first value must match `clusterIP`'));
    }
  } else if (clusterIPs.length > 0) {
    errors.push(invalidValue('spec.clusterIPs', clusterIPs, 'must be empty when `clusterIP` is not specified'));
  }
  for (const [i, family] of ipFamilies.entries()) {
    if (ipFamilies.indexOf(family) < i) errors.push(duplicateValue(`spec.ipFamilies[${i}]`, family));
  }
  return [...errors, ...checkClusterIps(clusterIPs, ipFamilies)];
}

function checkClusterIps(
  clusterIPs: readonly string[],
  ipFamilies: NonNullable<ServiceSpec['ipFamilies']>,
): FieldError[] {
  const field = 'spec.clusterIPs';
  if (clusterIPs[0] === HEADLESS) {
    return clusterIPs.length > 1 ? [invalidValue(field, clusterIPs, `'None' must be the first and only value`)] : [];
  }
  const malformed = clusterIPs.flatMap((ip, i) =>
    isIP(ip) === 0
      ? [invalidValue(`${field}[${i}]`, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
      : [],
  );
  const errors = [...malformed];
  if (clusterIPs.length > 2) errors.push(invalidValue(field, clusterIPs, 'may only hold up to 2 values'));
  if (malformed.length > 0) return errors;
  if (new Set(clusterIPs.map(isIP)).size < clusterIPs.length) {
    errors.push(invalidValue(field, clusterIPs, 'may specify no more than one IP for each IP family'));
  }
  for (const [i, ip] of clusterIPs.entries()) {
    const family = ipFamilies[i];
    if (family === undefined || family === familyOf(ip)) continue;
    const detail = `expected an ${family} value as indicated by \`ipFamilies[${i}]\``;
    errors.push(invalidValue(`${field}[${i}]`, ip, detail));
  }
  return errors;
}

export const familyOf = (ip: string): 'IPv4' | 'IPv6' => (isIP(ip) === 6 ? 'IPv6' : 'IPv4');

/** Checks that the addresses stay, except when a second family is added or released. */
export function checkServiceUpdate(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName' || old.type === 'ExternalName') return [];
  const { clusterIPs = [], ipFamilyPolicy } = spec;
  // Services that were stored before addresses were allocated have none.
  const before = old.clusterIPs ?? (old.clusterIP ? [old.clusterIP] : []);
  const errors: FieldError[] = [];
  if (before.length > 0 && clusterIPs.length === 0) {
    return [invalidValue('spec.clusterIPs[0]', clusterIPs, 'primary clusterIP can not be unset')];
  }
  for (const [i, ip] of before.entries()) {
    if (clusterIPs[i] !== undefined && clusterIPs[i] !== ip) {
      errors.push(invalidValue(`spec.clusterIPs[${i}]`, clusterIPs, FIXED));
    }
  }
  if (clusterIPs.length < before.length && ipFamilyPolicy !== 'SingleStack') {
    const detail = `must be set to 'SingleStack' when releasing the secondary clusterIP`;
    errors.push(invalidValue('spec.ipFamilyPolicy', ipFamilyPolicy, detail));
  }
  return errors;
}

/** Removes fields that do not apply to the new type, unless the user changed them in the same write. */
export function dropUnusedServiceFields({ spec }: Service, { spec: old }: Service): void {
  if (old.type !== 'ExternalName' && spec.type === 'ExternalName' && deepEqual(spec.clusterIPs, old.clusterIPs)) {
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) delete spec[field];
  }
  const portsOf = ({ ports = [] }: ServiceSpec) => ports.map(({ nodePort }) => nodePort ?? 0);
  if (hasNodePorts(old) && !hasNodePorts(spec) && deepEqual(portsOf(spec), portsOf(old))) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (hasHealthCheckPort(old) && !hasHealthCheckPort(spec) && spec.healthCheckNodePort === old.healthCheckNodePort) {
    delete spec.healthCheckNodePort;
  }
  if (old.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    delete spec.allocateLoadBalancerNodePorts;
    if (spec.loadBalancerClass === old.loadBalancerClass) delete spec.loadBalancerClass;
  }
  if (hasNodePorts(old) && !hasNodePorts(spec) && spec.externalTrafficPolicy === old.externalTrafficPolicy) {
    delete spec.externalTrafficPolicy;
  }
}
