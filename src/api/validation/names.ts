/** Checks names of volumes, disks, networks and interfaces. They become parts of ids, so they must be DNS labels. */
import { duplicateValue, invalidValue, type FieldError } from '#kube/field-error.ts';
import { nameErrors } from '#kube/names.ts';

export interface Named {
  readonly name: string;
}

/** Checks that names are unique and valid. */
export function checkNames(items: readonly Named[], path: string): FieldError[] {
  const seen = new Set<string>();
  return items.flatMap(({ name }, i) => {
    const field = `${path}[${i}].name`;
    if (seen.has(name)) return [duplicateValue(field, name)];
    seen.add(name);
    return nameErrors('label', name).map((text) => invalidValue(field, name, text));
  });
}

/** Returns the keys that are set in `object`. */
export function listSetKeys<T extends object, K extends keyof T & string>(object: T, keys: readonly K[]): K[] {
  return keys.filter((key) => object[key] !== undefined && object[key] !== null);
}
