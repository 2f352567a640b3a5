/** Validates claim specs, of claims and of templates in pods. */
import { checkAccessModes } from '#engine/registry/kinds/volumes/access-modes.ts';
import type { ClaimSpec } from '#engine/registry/kinds/volumes/claim-spec.ts';
import { checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { checkPositiveAmount } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';

export function checkClaimSpec(field: string, spec: ClaimSpec): FieldError[] {
  const { accessModes, selector, resources, storageClassName } = spec;
  const size = resources?.requests?.['storage'];
  return [
    ...checkAccessModes(`${field}.accessModes`, accessModes, 'at least 1 access mode is required'),
    ...checkLabelSelector(`${field}.selector`, selector),
    ...(size === undefined
      ? [requiredValue(`${field}.resources[storage]`)]
      : checkPositiveAmount(`${field}.resources[storage]`, size)),
    ...(storageClassName ? checkName(`${field}.storageClassName`, storageClassName, 'subdomain') : []),
    ...checkSources(field, spec),
  ];
}

function checkSources(field: string, { dataSource, dataSourceRef }: ClaimSpec): FieldError[] {
  const errors = [
    ...checkSource(`${field}.dataSource`, dataSource),
    ...checkSource(`${field}.dataSourceRef`, dataSourceRef),
  ];
  if (dataSource === undefined || dataSourceRef === undefined) return errors;
  const { namespace, ...ref } = dataSourceRef;
  if (namespace) {
    errors.push(invalidValue(field, 'dataSource', 'may not be specified when dataSourceRef.namespace is specified'));
  } else if (!sameValue(ref, dataSource)) {
    errors.push(invalidValue(field, 'dataSource', 'must match dataSourceRef'));
  }
  return errors;
}

function checkSource(field: string, source: ClaimSpec['dataSourceRef']): FieldError[] {
  if (source === undefined) return [];
  const { apiGroup = '', kind, name, namespace } = source;
  const errors: FieldError[] = [];
  if (name === '') errors.push(requiredValue(`${field}.name`));
  if (kind === '') errors.push(requiredValue(`${field}.kind`));
  if (apiGroup !== '') errors.push(...checkName(`${field}.apiGroup`, apiGroup, 'subdomain'));
  else if (kind !== 'PersistentVolumeClaim') {
    const text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    errors.push(invalidValue(field, kind, text));
  }
  if (namespace) errors.push(...checkName(`${field}.namespace`, namespace, 'label'));
  return errors;
}
