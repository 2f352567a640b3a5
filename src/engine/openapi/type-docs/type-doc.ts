/**
 * The documentation of the Go types behind built-in kinds, as OpenAPI and `kubectl explain` show it: the name of each
 * type, and a short description of the type and of its fields. Validation belongs to the schemas of the kinds.
 */

/** A field's description, or its description and the type of its values: from this package, `core.X` or `meta.X`. */
export type FieldDoc = string | readonly [description: string, type: string];

/** The fields of a type by name; '' holds the description of the type itself. */
export type TypeDoc = Readonly<Record<string, FieldDoc>>;

/** The types of a Go package by name. */
export type PackageDocs = Readonly<Record<string, TypeDoc>>;
