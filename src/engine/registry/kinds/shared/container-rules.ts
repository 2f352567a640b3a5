/** Rules for one container of a pod or template, beyond its schema. */
import type { Container } from '#engine/registry/kinds/shared/container.ts';
import {
  checkOneSource,
  checkPort,
  checkPortName,
  checkRequiredName,
  checkUnique,
} from '#engine/registry/kinds/shared/formats.ts';
import { checkResources } from '#engine/registry/kinds/shared/quantities.ts';
import { type FieldError, invalidValue, quoteValue, requiredValue } from '#kube/field-error.ts';

type Mount = NonNullable<Container['volumeMounts']>[number];
type Port = NonNullable<Container['ports']>[number];
type Env = NonNullable<Container['env']>[number];
type Probe = NonNullable<Container['livenessProbe']>;

export function checkContainer(field: string, container: Container, volumeNames: ReadonlySet<string>): FieldError[] {
  const { name, image, ports = [], env = [], volumeMounts = [], volumeDevices = [], resources } = container;
  return [
    ...checkRequiredName(`${field}.name`, name, 'label'),
    ...(image === undefined || image === '' ? [requiredValue(`${field}.image`)] : []),
    ...checkPorts(`${field}.ports`, ports),
    ...env.flatMap((variable, i) => checkEnv(`${field}.env[${i}]`, variable)),
    ...checkMounts(`${field}.volumeMounts`, volumeMounts, volumeNames),
    ...volumeDevices.flatMap((device, i) =>
      checkMountName(`${field}.volumeDevices[${i}].name`, device.name, volumeNames),
    ),
    ...checkResources(`${field}.resources`, resources),
    ...checkProbe(`${field}.livenessProbe`, container.livenessProbe),
    ...checkProbe(`${field}.readinessProbe`, container.readinessProbe),
    ...checkProbe(`${field}.startupProbe`, container.startupProbe),
  ];
}

function checkPorts(field: string, ports: readonly Port[]): FieldError[] {
  const errors: FieldError[] = [];
  const names: [string, string][] = [];
  for (const [i, { name, containerPort, hostPort }] of ports.entries()) {
    if (name) {
      const wrong = checkPortName(`${field}[${i}].name`, name);
      errors.push(...wrong);
      if (wrong.length === 0) names.push([`${field}[${i}].name`, name]);
    }
    if (containerPort === 0) errors.push(requiredValue(`${field}[${i}].containerPort`));
    else errors.push(...checkPort(`${field}[${i}].containerPort`, containerPort));
    if (hostPort) errors.push(...checkPort(`${field}[${i}].hostPort`, hostPort));
  }
  return [...errors, ...checkUnique(names)];
}

const ENV_NAME = /^[\x20-\x3c\x3e-\x7e]+$/;
const ENV_NAME_TEXT =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";
const ENV_SOURCES = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'];

function checkEnv(field: string, { name, value, valueFrom }: Env): FieldError[] {
  const errors: FieldError[] = [];
  if (name === '') errors.push(requiredValue(`${field}.name`));
  else if (!ENV_NAME.test(name)) errors.push(invalidValue(`${field}.name`, name, ENV_NAME_TEXT));
  if (valueFrom === undefined) return errors;
  const source = `${field}.valueFrom`;
  const set = ENV_SOURCES.filter((key) => (valueFrom as Record<string, unknown>)[key] !== undefined);
  if (set.length === 0) {
    const choices = ENV_SOURCES.map((key) => `\`${key}\``).join(', ');
    errors.push(invalidValue(source, '', `must specify one of: ${choices.replace(/, (?=[^,]*$)/, ' or ')}`));
  } else if (value) {
    errors.push(invalidValue(source, '', 'may not be specified when `value` is not empty'));
  } else if (set.length > 1) {
    errors.push(invalidValue(source, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

function checkMounts(field: string, mounts: readonly Mount[], volumeNames: ReadonlySet<string>): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  for (const [i, { name, mountPath, subPath, subPathExpr }] of mounts.entries()) {
    errors.push(...checkMountName(`${field}[${i}].name`, name, volumeNames));
    if (mountPath === '') errors.push(requiredValue(`${field}[${i}].mountPath`));
    if (paths.has(mountPath)) errors.push(invalidValue(`${field}[${i}].mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    errors.push(...checkDescendingPath(`${field}[${i}].subPath`, subPath));
    errors.push(...checkDescendingPath(`${field}[${i}].subPathExpr`, subPathExpr));
  }
  return errors;
}

function checkMountName(field: string, name: string, volumeNames: ReadonlySet<string>): FieldError[] {
  if (name === '') return [requiredValue(field)];
  if (volumeNames.has(name)) return [];
  return [{ reason: 'FieldValueNotFound', field, message: `Not found: ${quoteValue(name)}` }];
}

/** A path below a volume must not lead out of it. */
export function checkDescendingPath(field: string, path: string | undefined): FieldError[] {
  if (!path) return [];
  if (path.startsWith('/')) return [invalidValue(field, path, 'must be a relative path')];
  return path.split('/').includes('..') ? [invalidValue(field, path, "must not contain '..'")] : [];
}

const PROBE_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc'];

function checkProbe(field: string, probe: Probe | undefined): FieldError[] {
  if (probe === undefined) return [];
  return checkOneSource(field, probe, PROBE_HANDLERS, 'handler');
}
