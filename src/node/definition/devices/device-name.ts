/** Names in the spec become ids in the hypervisor, unchanged: `disk-<name>`, `nic-<name>`. */
import { duplicateValue, invalidValue, type FieldError } from '#kube/field-error.ts';

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** What is wrong with the names of a list of devices. */
export function nameProblems(names: readonly string[], field: string): FieldError[] {
  const seen = new Set<string>();
  return names.flatMap((name, i) => {
    const path = `${field}[${i}].name`;
    if (!NAME.test(name)) {
      return [invalidValue(path, name, 'must consist of letters, digits, "-", "_" and ".", with no mark at its ends')];
    }
    if (seen.has(name)) return [duplicateValue(path, name)];
    seen.add(name);
    return [];
  });
}
