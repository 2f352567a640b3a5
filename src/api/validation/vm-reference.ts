/** Checks references to a VM of the same namespace: the source of a snapshot, the target of a restore. */
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { vmReference } from '#api/virtual-machine-snapshot/kind.ts';
import { invalidValue, requiredValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';
import { nameErrors } from '#kube/names.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export function checkVmReference({ apiGroup, kind, name }: Infer<typeof vmReference>, path: string): FieldError[] {
  return [
    ...(apiGroup === undefined || apiGroup === KUBEVIRT_GROUP
      ? []
      : [unsupportedValue(`${path}.apiGroup`, apiGroup, [KUBEVIRT_GROUP])]),
    ...(kind === 'VirtualMachine' ? [] : [unsupportedValue(`${path}.kind`, kind, ['VirtualMachine'])]),
    ...checkObjectName(name, `${path}.name`),
  ];
}

export function checkObjectName(name: string, path: string): FieldError[] {
  if (name === '') return [requiredValue(path)];
  return nameErrors('subdomain', name).map((text) => invalidValue(path, name, text));
}
