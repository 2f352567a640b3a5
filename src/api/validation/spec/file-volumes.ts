/** Checks volumes with files from API objects: configMap, secret, serviceAccount, downwardAPI. */
import type { VmiVolume } from '#api/domain/volume.ts';
import { isMetadataPath, METADATA_PATHS } from '#kube/metadata-path.ts';
import {
  duplicateValue,
  forbiddenField,
  invalidValue,
  requiredValue,
  unsupportedValue,
  type FieldError,
} from '#kube/field-error.ts';
import { nameErrors } from '#kube/names.ts';

/** Returns undefined if the volume has another source. */
export function checkFiles(
  { configMap, secret, serviceAccount, downwardAPI }: VmiVolume,
  path: string,
): FieldError[] | undefined {
  if (configMap !== undefined) return checkName(configMap.name, `${path}.configMap.name`);
  if (secret !== undefined) return checkName(secret.secretName, `${path}.secret.secretName`);
  if (serviceAccount !== undefined) {
    return checkName(serviceAccount.serviceAccountName, `${path}.serviceAccount.serviceAccountName`);
  }
  return downwardAPI === undefined ? undefined : checkDownward(downwardAPI, `${path}.downwardAPI`);
}

/** Allows one account, because it becomes the account of the launcher pod. */
export function checkAccounts(volumes: readonly VmiVolume[], path: string): FieldError[] {
  const named = volumes.flatMap(({ serviceAccount }, i) => (serviceAccount === undefined ? [] : [i]));
  return named
    .slice(1)
    .map((i) => forbiddenField(`${path}[${i}].serviceAccount`, 'must have max one serviceAccount volume set'));
}

function checkName(name: string, field: string): FieldError[] {
  return nameErrors('subdomain', name).map((text) => invalidValue(field, name, text));
}

function checkDownward({ fields = [] }: NonNullable<VmiVolume['downwardAPI']>, path: string): FieldError[] {
  const seen = new Set<string>();
  return fields.flatMap((field, i) => {
    const { path: file, fieldRef } = field;
    const at = `${path}.fields[${i}]`;
    const errors: FieldError[] = [];
    if (seen.has(file)) errors.push(duplicateValue(`${at}.path`, file));
    seen.add(file);
    // An unknown source has been refused by its name already.
    const hasUnknownSource = Object.keys(field).some((key) => key !== 'path' && key !== 'fieldRef');
    if (fieldRef === undefined)
      return hasUnknownSource ? errors : [...errors, requiredValue(`${at}.fieldRef`, 'the source of the file')];
    const { apiVersion = '' } = fieldRef;
    if (apiVersion !== '' && apiVersion !== 'v1') {
      errors.push(unsupportedValue(`${at}.fieldRef.apiVersion`, apiVersion, ['v1']));
    }
    if (!isMetadataPath(fieldRef.fieldPath)) {
      errors.push(unsupportedValue(`${at}.fieldRef.fieldPath`, fieldRef.fieldPath, METADATA_PATHS));
    }
    return errors;
  });
}
