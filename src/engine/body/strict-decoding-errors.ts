/**
 * Reports duplicate and unknown fields of a body. Decoding finds the former, shaping the latter; here they become
 * Kubernetes' messages, in its order.
 */
import { findDuplicateFields } from '#engine/encoding/json-duplicates.ts';
import { warningLines } from '#engine/body/yaml-duplicates.ts';

/** Returns the errors of a body with duplicate fields, given the paths of its unknown fields. */
export type DuplicateFields = (unknown: readonly string[]) => string[];

const unknownField = (path: string) => `unknown field ${JSON.stringify(path)}`;
const duplicateField = (path: string) => `duplicate field ${JSON.stringify(path)}`;

/** Returns the errors of a body, given its unknown fields. */
export function strictDecodingErrors(unknown: readonly string[], duplicates: DuplicateFields | undefined): string[] {
  return duplicates === undefined ? unknown.map(unknownField) : duplicates(unknown);
}

/** Built-in kinds are reported in document order; for custom kinds, unknown fields come last. */
export function jsonDuplicates(text: string, { builtIn }: { readonly builtIn: boolean }): DuplicateFields | undefined {
  const duplicates = findDuplicateFields(text);
  if (duplicates.length === 0) return undefined;
  return (unknown) => {
    const errors = builtIn && unknown.length > 0 ? findDuplicateFields(text, new Set(unknown)) : duplicates;
    const reported = new Set(errors.flatMap(({ problem, path }) => (problem === 'unknown' ? [path] : [])));
    return [
      ...errors.map(({ problem, path }) => (problem === 'unknown' ? unknownField(path) : duplicateField(path))),
      ...unknown.filter((path) => !reported.has(path)).map(unknownField),
    ];
  };
}

export function yamlDuplicates(error: string): DuplicateFields {
  return (unknown) => [error, ...unknown.map(unknownField)];
}

/** Reports duplicates of a patch before the unknown fields of its result. */
export function patchDuplicates(text: string, prefix: string): DuplicateFields | undefined {
  const errors = findDuplicateFields(text).map(({ path }) => prefix + duplicateField(path));
  return errors.length === 0 ? undefined : (unknown) => [...errors, ...unknown.map(unknownField)];
}

export const asWarnings = (errors: readonly string[]): string[] => errors.flatMap(warningLines);
