/** Checks names in the spec, which become part of ids in the hypervisor unchanged: `disk-<name>`, `nic-<name>`. */
import { duplicateValue, invalidValue, type FieldError } from '#kube/field-error.ts';

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Returns an error for each invalid or repeated name of a list of devices. */
export function checkDeviceNames(names: readonly string[], field: string): FieldError[] {
  const seen = new Set<string>();
  return names.flatMap((name, i) => {
    const path = `${field}[${i}].name`;
    if (!NAME.test(name)) {
      return [
        invalidValue(
          path,
          name,
          'must consist of letters, digits, "-", "_" and ".", and start and end with a letter or digit',
        ),
      ];
    }
    if (seen.has(name)) return [duplicateValue(path, name)];
    seen.add(name);
    return [];
  });
}
