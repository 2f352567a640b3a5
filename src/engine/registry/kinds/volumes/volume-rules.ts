/** Validates common volume sources; only the schema validates the others. */
import { checkClaimSpec } from '#engine/registry/kinds/volumes/claim-spec.ts';
import { checkName, checkOneSource, checkRequiredName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { type EnginePodVolume, VOLUME_SOURCES } from '#engine/registry/kinds/volumes/volume.ts';
import { type FieldError, invalidValue, requiredValue, tooLong } from '#kube/field-error.ts';

type KeyToPath = NonNullable<NonNullable<EnginePodVolume['configMap']>['items']>[number];
type Projection = NonNullable<NonNullable<EnginePodVolume['projected']>['sources']>[number];

export function checkPodVolumes(field: string, volumes: readonly EnginePodVolume[]): FieldError[] {
  return [
    ...volumes.flatMap((volume, i) => [
      ...checkOneSource(`${field}[${i}]`, volume, VOLUME_SOURCES, 'volume'),
      ...checkRequiredName(`${field}[${i}].name`, volume.name, 'label'),
      ...checkSource(`${field}[${i}]`, volume),
    ]),
    ...checkUnique(volumes.map(({ name }, i) => [`${field}[${i}].name`, name] as const)),
  ];
}

function checkSource(field: string, volume: EnginePodVolume): FieldError[] {
  const { configMap, secret, downwardAPI, projected, persistentVolumeClaim, ephemeral, hostPath, nfs, csi } = volume;
  const errors: FieldError[] = [];
  const require = (value: string | undefined, path: string) => {
    if (!value) errors.push(requiredValue(`${field}.${path}`));
  };
  if (configMap !== undefined) require(configMap.name, 'configMap.name');
  if (secret !== undefined) require(secret.secretName, 'secret.secretName');
  if (persistentVolumeClaim !== undefined) require(persistentVolumeClaim.claimName, 'persistentVolumeClaim.claimName');
  for (const [source, value] of Object.entries({ configMap, secret, downwardAPI, projected })) {
    errors.push(...checkMode(`${field}.${source}.defaultMode`, value?.defaultMode));
  }
  errors.push(
    ...checkItems(`${field}.configMap.items`, configMap?.items),
    ...checkItems(`${field}.secret.items`, secret?.items),
    ...(projected?.sources ?? []).flatMap((one, i) => checkProjection(`${field}.projected.sources[${i}]`, one)),
  );
  if (ephemeral !== undefined) {
    const { volumeClaimTemplate: template } = ephemeral;
    if (template === undefined) errors.push(requiredValue(`${field}.ephemeral.volumeClaimTemplate`));
    else errors.push(...checkClaimSpec(`${field}.ephemeral.volumeClaimTemplate.spec`, template.spec));
  }
  if (hostPath !== undefined) errors.push(...checkHostPath(`${field}.hostPath`, hostPath));
  if (nfs !== undefined) errors.push(...checkNfs(`${field}.nfs`, nfs));
  if (csi !== undefined) errors.push(...checkCsiDriver(`${field}.csi.driver`, csi.driver));
  return errors;
}

const MODE_TEXT = 'must be a number between 0 and 0777 (octal), both inclusive';

function checkMode(field: string, mode: number | undefined): FieldError[] {
  return mode === undefined || (mode >= 0 && mode <= 0o777) ? [] : [invalidValue(field, mode, MODE_TEXT)];
}

function checkItems(field: string, items: readonly KeyToPath[] = []): FieldError[] {
  return items.flatMap(({ key, path, mode }, i) => [
    ...(key === '' ? [requiredValue(`${field}[${i}].key`)] : []),
    ...(path === '' ? [requiredValue(`${field}[${i}].path`)] : []),
    ...checkDescendingPath(`${field}[${i}].path`, path),
    ...checkMode(`${field}[${i}].mode`, mode),
  ]);
}

const TOKEN_SECONDS_MIN = 600;

function checkProjection(field: string, { configMap, secret, serviceAccountToken }: Projection): FieldError[] {
  const errors: FieldError[] = [];
  for (const [source, keys] of Object.entries({ configMap, secret })) {
    if (keys === undefined) continue;
    if (!keys.name) errors.push(requiredValue(`${field}.${source}.name`));
    errors.push(...checkItems(`${field}.${source}.items`, keys.items));
  }
  const { expirationSeconds = TOKEN_SECONDS_MIN } = serviceAccountToken ?? {};
  if (expirationSeconds < TOKEN_SECONDS_MIN) {
    const text = 'may not specify a duration less than 10 minutes';
    errors.push(invalidValue(`${field}.serviceAccountToken.expirationSeconds`, expirationSeconds, text));
  }
  return errors;
}

/** Checks a hostPath source, or a `local` source, which has no type. */
export function checkHostPath(field: string, { path }: { readonly path: string }): FieldError[] {
  return path === '' ? [requiredValue(`${field}.path`)] : checkNoBackstep(`${field}.path`, path);
}

export function checkNfs(field: string, { server, path }: NonNullable<EnginePodVolume['nfs']>): FieldError[] {
  const errors: FieldError[] = [];
  if (server === '') errors.push(requiredValue(`${field}.server`));
  if (path === '') errors.push(requiredValue(`${field}.path`));
  if (!path.startsWith('/')) errors.push(invalidValue(`${field}.path`, path, 'must be an absolute path'));
  return errors;
}

const DRIVER_MAX = 63;

export function checkCsiDriver(field: string, driver: string): FieldError[] {
  if (driver === '') return [requiredValue(field)];
  const errors = checkName(field, driver.toLowerCase(), 'subdomain');
  return driver.length > DRIVER_MAX ? [tooLong(field, DRIVER_MAX), ...errors] : errors;
}

export function hasBackstep(path: string): boolean {
  return path.split('/').includes('..');
}

function checkNoBackstep(field: string, path: string): FieldError[] {
  return hasBackstep(path) ? [invalidValue(field, path, "must not contain '..'")] : [];
}

/** Checks a path within a volume, which must not leave it. */
export function checkDescendingPath(field: string, path: string | undefined): FieldError[] {
  if (!path) return [];
  if (path.startsWith('/')) return [invalidValue(field, path, 'must be a relative path')];
  return checkNoBackstep(field, path);
}
