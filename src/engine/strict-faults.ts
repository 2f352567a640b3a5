/**
 * What a body has that no object of its kind has: fields that are there twice, and fields that the kind does not know.
 * Decoding finds the former, shaping the latter; here they become what Kubernetes says of them, in its order.
 */
import { repeatedFields } from '#engine/json-repeats.ts';
import { warningLines } from '#engine/yaml-repeats.ts';

/** The faults of a body that repeats fields, from the paths of its unknown fields. */
export type Repeats = (unknown: readonly string[]) => string[];

const unknownField = (path: string) => `unknown field ${JSON.stringify(path)}`;
const duplicateField = (path: string) => `duplicate field ${JSON.stringify(path)}`;

/** The faults of a body, given what the kind does not know of it. */
export function strictFaults(unknown: readonly string[], repeats: Repeats | undefined): string[] {
  return repeats === undefined ? unknown.map(unknownField) : repeats(unknown);
}

/** Built-in kinds are told of in the order of the text; of custom ones what is unknown is found last. */
export function jsonRepeats(text: string, { builtIn }: { readonly builtIn: boolean }): Repeats | undefined {
  const repeated = repeatedFields(text);
  if (repeated.length === 0) return undefined;
  return (unknown) => {
    const faults = builtIn && unknown.length > 0 ? repeatedFields(text, new Set(unknown)) : repeated;
    const told = new Set(faults.flatMap(({ fault, path }) => (fault === 'unknown' ? [path] : [])));
    return [
      ...faults.map(({ fault, path }) => (fault === 'unknown' ? unknownField(path) : duplicateField(path))),
      ...unknown.filter((path) => !told.has(path)).map(unknownField),
    ];
  };
}

export function yamlRepeats(fault: string): Repeats {
  return (unknown) => [fault, ...unknown.map(unknownField)];
}

/** Of a patch, before the unknown fields of what it makes. */
export function patchRepeats(text: string, prefix: string): Repeats | undefined {
  const faults = repeatedFields(text).map(({ path }) => prefix + duplicateField(path));
  return faults.length === 0 ? undefined : (unknown) => [...faults, ...unknown.map(unknownField)];
}

export const asWarnings = (faults: readonly string[]): string[] => faults.flatMap(warningLines);
