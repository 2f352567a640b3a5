/**
 * What OpenAPI says of the Go types behind built-in kinds, for `kubectl explain`: their names, and in a few words what
 * they and their fields mean. Schemas decide what is valid; here nothing does.
 */

/** The words for a field, or those and the type of its values: of this package, `core.X` or `meta.X`. */
export type FieldWords = string | readonly [words: string, type: string];

/** '' stands for the type itself. */
export type Part = Readonly<Record<string, FieldWords>>;

/** The types of a Go package by name. */
export type Parts = Readonly<Record<string, Part>>;
