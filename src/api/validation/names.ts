/** Names within a spec: of volumes, disks, networks and interfaces. They become parts of ids, so they are DNS labels. */
import { duplicateValue, invalidValue, type FieldError } from '#kube/field-error.ts';
import { nameErrors } from '#kube/names.ts';

export interface Named {
  readonly name: string;
}

/** Each name once, and usable. */
export function checkNames(items: readonly Named[], path: string): FieldError[] {
  const seen = new Set<string>();
  return items.flatMap(({ name }, i) => {
    const field = `${path}[${i}].name`;
    if (seen.has(name)) return [duplicateValue(field, name)];
    seen.add(name);
    return nameErrors('label', name).map((text) => invalidValue(field, name, text));
  });
}

/** Which of the words are set in `object`. */
export function setOf<T extends object, K extends keyof T & string>(object: T, words: readonly K[]): K[] {
  return words.filter((word) => object[word] !== undefined && object[word] !== null);
}
