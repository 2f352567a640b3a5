import type { Probe } from '#api/domain/probe.ts';
import { listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

const HANDLERS = ['tcpSocket', 'exec', 'httpGet', 'guestAgentPing'] as const;
const MAX_PORT = 65_535;
const HEADER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Control characters could break a request line. */
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\x00-\x1f\x7f]/;

/** Checks probes: each has exactly one handler, and network probes need a network. */
export function checkProbes(spec: VmiSpec, path: string): FieldError[] {
  return [
    ...checkProbe(spec.readinessProbe, `${path}.readinessProbe`, spec),
    ...checkProbe(spec.livenessProbe, `${path}.livenessProbe`, spec),
    ...checkOneSuccess(spec.livenessProbe, `${path}.livenessProbe`),
  ];
}

function checkProbe(probe: Probe | undefined, field: string, spec: VmiSpec): FieldError[] {
  if (probe === undefined) return [];
  const handlers = listSetKeys(probe, HANDLERS);
  if (handlers.length > 1)
    return [invalidValue(field, handlers.join(', '), `${field} must have exactly one probe type set`)];
  if (handlers.length === 0) {
    const [tcp, exec, http, ping] = HANDLERS.map((name) => `${field}.${name}`);
    return [requiredValue(field, `either ${tcp}, ${exec}, ${http} or ${ping} must be set if a ${field} is specified`)];
  }
  const { exec, httpGet, tcpSocket } = probe;
  const errors: FieldError[] = [];
  if (exec !== undefined && (exec.command?.[0] ?? '') === '') errors.push(requiredValue(`${field}.exec.command`));
  for (const [name, target] of Object.entries({ httpGet, tcpSocket })) {
    if (target === undefined) continue;
    const at = `${field}.${name}`;
    errors.push(...checkPort(target.port, `${at}.port`));
    if ((spec.networks ?? []).length === 0 && !hasDefaultNetwork(spec)) {
      errors.push(forbiddenField(at, `${at} is only allowed if a network is attached`));
    }
    // Probes go to the guest only: a host name could resolve to any address.
    if (target.host) errors.push(forbiddenField(`${at}.host`, 'is not supported; probes go to the guest itself'));
  }
  return [...errors, ...checkHttp(httpGet, `${field}.httpGet`)];
}

/** Without any interface in its spec, a guest gets one on the pod network. */
function hasDefaultNetwork({ domain, networks = [] }: VmiSpec): boolean {
  return networks.length === 0 && domain.devices?.autoattachPodInterface !== false;
}

function checkPort(port: unknown, field: string): FieldError[] {
  // A guest has no names for its ports.
  const isValid = typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= MAX_PORT;
  return isValid ? [] : [invalidValue(field, port, `must be between 1 and ${MAX_PORT}, inclusive`)];
}

function checkHttp(httpGet: Probe['httpGet'], field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (httpGet?.path !== undefined && UNPRINTABLE.test(httpGet.path)) {
    errors.push(invalidValue(`${field}.path`, httpGet.path, 'must not contain control characters'));
  }
  for (const [i, { name = '', value = '' }] of (httpGet?.httpHeaders ?? []).entries()) {
    const at = `${field}.httpHeaders[${i}]`;
    if (!HEADER.test(name)) errors.push(invalidValue(`${at}.name`, name, 'must be the name of an HTTP header'));
    if (UNPRINTABLE.test(value)) errors.push(invalidValue(`${at}.value`, value, 'must not contain control characters'));
  }
  return errors;
}

/** A liveness probe needs one success only, as in a Pod. */
function checkOneSuccess(probe: Probe | undefined, field: string): FieldError[] {
  const { successThreshold = 1 } = probe ?? {};
  return successThreshold <= 1 ? [] : [invalidValue(`${field}.successThreshold`, successThreshold, 'must be 1')];
}
