/** Checks volumes, which are the contents of disks: each has exactly one source. */
import type { CloudInitNoCloud, VmiVolume } from '#api/domain/volume.ts';
import { checkDirectLun, checkSharedLuns } from '#api/validation/devices/direct-luns.ts';
import { checkAccounts, checkFiles } from '#api/validation/spec/file-volumes.ts';
import { checkNames, listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';
import { nameErrors } from '#kube/names.ts';
import { parseQuantity, findQuantityError } from '#kube/quantity.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

const SOURCES = [
  'persistentVolumeClaim',
  'ephemeral',
  'emptyDisk',
  'hostDisk',
  'cloudInitNoCloud',
  'directLun',
  'configMap',
  'secret',
  'serviceAccount',
  'downwardAPI',
] as const;
const USER_DATA = ['userData', 'userDataBase64', 'secretRef'] as const;
const NETWORK_DATA = ['networkData', 'networkDataBase64', 'networkDataSecretRef'] as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function checkVmiVolumes({ volumes = [], domain }: VmiSpec, path: string): FieldError[] {
  const field = `${path}.volumes`;
  const used = new Set((domain.devices?.disks ?? []).map(({ name }) => name));
  const errors = [
    ...checkNames(volumes, field),
    ...checkSharedClaims(volumes, field),
    ...checkSharedLuns(volumes, field),
    ...checkAccounts(volumes, field),
  ];
  for (const [i, volume] of volumes.entries()) {
    errors.push(...checkVolume(volume, `${field}[${i}]`));
    if (used.has(volume.name)) continue;
    const text = `there is no disk with this name in ${path}.domain.devices.disks`;
    errors.push(invalidValue(`${field}[${i}].name`, volume.name, text));
  }
  return errors;
}

/** Refuses a claim in two volumes if one of them is writable: QEMU locks the image and would not start. */
function checkSharedClaims(volumes: readonly VmiVolume[], path: string): FieldError[] {
  const seen = new Map<string, boolean>();
  return volumes.flatMap(({ persistentVolumeClaim: claim }, i) => {
    if (claim === undefined) return [];
    const writes = claim.readOnly !== true;
    const before = seen.get(claim.claimName);
    seen.set(claim.claimName, writes || before === true);
    if (before === undefined || (!before && !writes)) return [];
    return [duplicateValue(`${path}[${i}].persistentVolumeClaim.claimName`, claim.claimName)];
  });
}

function checkVolume(volume: VmiVolume, path: string): FieldError[] {
  const sources = listSetKeys(volume, SOURCES);
  if (sources.length > 1) return [forbiddenField(path, `only one of ${sources.join(', ')} may be set`)];
  const { persistentVolumeClaim, ephemeral, emptyDisk, hostDisk, cloudInitNoCloud, directLun } = volume;
  if (persistentVolumeClaim !== undefined) {
    return checkClaimName(persistentVolumeClaim.claimName, `${path}.persistentVolumeClaim`);
  }
  if (ephemeral !== undefined) {
    const field = `${path}.ephemeral.persistentVolumeClaim`;
    const claim = ephemeral.persistentVolumeClaim;
    return claim === undefined ? [requiredValue(field)] : checkClaimName(claim.claimName, field);
  }
  if (emptyDisk !== undefined) return checkCapacity(emptyDisk.capacity, `${path}.emptyDisk.capacity`);
  if (hostDisk !== undefined) return checkHostDisk(hostDisk, `${path}.hostDisk`);
  if (cloudInitNoCloud !== undefined) return checkCloudInit(cloudInitNoCloud, `${path}.cloudInitNoCloud`);
  if (directLun !== undefined) return checkDirectLun(directLun, `${path}.directLun`);
  const files = checkFiles(volume, path);
  if (files !== undefined) return files;
  // An unknown source has been refused by its name already; a second error would only confuse.
  const hasUnknownSource = Object.keys(volume).some((key) => key !== 'name');
  return hasUnknownSource ? [] : [requiredValue(path, `one of ${SOURCES.join(', ')} must be set`)];
}

function checkClaimName(name: string, path: string): FieldError[] {
  return nameErrors('subdomain', name).map((text) => invalidValue(`${path}.claimName`, name, text));
}

function checkCapacity(capacity: IntOrString, field: string): FieldError[] {
  if (findQuantityError(capacity) !== undefined || parseQuantity(String(capacity)).nanos > 0n) return [];
  return [invalidValue(field, capacity, 'must be greater than zero')];
}

function checkHostDisk(
  { path, type, capacity, shared }: NonNullable<VmiVolume['hostDisk']>,
  field: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (shared === true) errors.push(forbiddenField(`${field}.shared`, 'is not supported yet'));
  if (!path.startsWith('/') || path.endsWith('/') || path.includes('\0')) {
    errors.push(invalidValue(`${field}.path`, path, 'must be the absolute path of a file'));
  } else if (path.split('/').includes('..')) {
    errors.push(invalidValue(`${field}.path`, path, "must not contain '..'"));
  }
  if (type === 'DiskOrCreate' && capacity === undefined) {
    errors.push(requiredValue(`${field}.capacity`, 'the size of the file if it is created'));
  }
  if (capacity !== undefined) errors.push(...checkCapacity(capacity, `${field}.capacity`));
  return errors;
}

function checkCloudInit(source: CloudInitNoCloud, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const userData = listSetKeys(source, USER_DATA);
  const networkData = listSetKeys(source, NETWORK_DATA);
  if (userData.length > 1) errors.push(forbiddenField(path, `only one of ${userData.join(', ')} may be set`));
  if (networkData.length > 1) errors.push(forbiddenField(path, `only one of ${networkData.join(', ')} may be set`));
  if (userData.length + networkData.length === 0) {
    errors.push(requiredValue(path, `one of ${USER_DATA.join(', ')} must be set`));
  }
  for (const field of ['userDataBase64', 'networkDataBase64'] as const) {
    const text = source[field];
    // The value may be a secret, so the error does not repeat it.
    if (text !== undefined && !BASE64.test(text))
      errors.push(invalidValue(`${path}.${field}`, '', 'is not valid base64'));
  }
  for (const field of ['secretRef', 'networkDataSecretRef'] as const) {
    const name = source[field]?.name;
    if (name === undefined) continue;
    errors.push(...nameErrors('subdomain', name).map((text) => invalidValue(`${path}.${field}.name`, name, text)));
  }
  return errors;
}
