/** Validates one container of a pod or template. Environment and probes have files of their own. */
import type { Container } from '#engine/registry/kinds/pod-spec/container.ts';
import { checkEnv, checkEnvFrom } from '#engine/registry/kinds/pod-spec/env.ts';
import { checkPort, checkPortName, checkRequiredName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { checkDescendingPath, hasBackstep } from '#engine/registry/kinds/volumes/volume-rules.ts';
import { checkResources } from '#engine/registry/kinds/shared/quantities.ts';
import type { EnginePodVolume } from '#engine/registry/kinds/volumes/volume.ts';
import { type FieldError, invalidValue, quoteValue, requiredValue } from '#kube/field-error.ts';

type Mount = NonNullable<Container['volumeMounts']>[number];
type Device = NonNullable<Container['volumeDevices']>[number];
type Port = NonNullable<Container['ports']>[number];
type Volumes = ReadonlyMap<string, EnginePodVolume>;

export function checkContainer(field: string, container: Container, volumes: Volumes): FieldError[] {
  const { name, image, ports = [], env = [], envFrom = [], volumeMounts = [], volumeDevices = [] } = container;
  return [
    ...checkRequiredName(`${field}.name`, name, 'label'),
    ...(image === undefined || image === '' ? [requiredValue(`${field}.image`)] : []),
    ...checkPorts(`${field}.ports`, ports),
    ...env.flatMap((variable, i) => checkEnv(`${field}.env[${i}]`, variable)),
    ...envFrom.flatMap((source, i) => checkEnvFrom(`${field}.envFrom`, i, source)),
    ...checkMounts(`${field}.volumeMounts`, volumeMounts, volumes),
    ...checkDevices(`${field}.volumeDevices`, volumeDevices, volumes),
    ...checkResources(`${field}.resources`, container.resources),
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

function checkMounts(field: string, mounts: readonly Mount[], volumes: Volumes): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  for (const [i, { name, mountPath, subPath, subPathExpr }] of mounts.entries()) {
    errors.push(...checkMountName(`${field}[${i}].name`, name, volumes));
    if (mountPath === '') errors.push(requiredValue(`${field}[${i}].mountPath`));
    if (paths.has(mountPath)) errors.push(invalidValue(`${field}[${i}].mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    errors.push(...checkDescendingPath(`${field}[${i}].subPath`, subPath));
    errors.push(...checkDescendingPath(`${field}[${i}].subPathExpr`, subPathExpr));
  }
  return errors;
}

function checkMountName(field: string, name: string, volumes: Volumes): FieldError[] {
  if (name === '') return [requiredValue(field)];
  if (volumes.has(name)) return [];
  return [{ reason: 'FieldValueNotFound', field, message: `Not found: ${quoteValue(name)}` }];
}

/** A device must be a claim in block mode, with a path of its own. */
function checkDevices(field: string, devices: readonly Device[], volumes: Volumes): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const paths = new Set<string>();
  for (const [i, { name, devicePath }] of devices.entries()) {
    const at = `${field}[${i}]`;
    const wrongName = (text: string) => errors.push(invalidValue(`${at}.name`, name, text));
    const wrongPath = (text: string) => errors.push(invalidValue(`${at}.devicePath`, devicePath, text));
    const volume = volumes.get(name);
    errors.push(...checkMountName(`${at}.name`, name, volumes));
    if (names.has(name)) wrongName('must be unique');
    if (volume !== undefined && volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      wrongName('can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode');
    }
    if (devicePath === '') errors.push(requiredValue(`${at}.devicePath`));
    if (paths.has(devicePath)) wrongPath('must be unique');
    if (hasBackstep(devicePath)) wrongPath("can not contain backsteps ('..')");
    names.add(name);
    paths.add(devicePath);
  }
  return errors;
}
