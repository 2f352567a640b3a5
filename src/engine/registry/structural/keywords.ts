/** Accessors for schema keywords that all walkers share. */
import type { Schema } from '#kube/schema.ts';

/** These fields belong to the object, not to its schema: registry/metadata.ts handles them. */
export const OBJECT_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Returns a Map, because a key from input must never meet Object.prototype. Ignores `__proto__`. */
export function propertiesOf<T>(schema: Schema, compile: (property: Schema, name: string) => T): Map<string, T> {
  const compiled = new Map<string, T>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (name !== '__proto__') compiled.set(name, compile(property, name));
  }
  return compiled;
}

/** Returns the schema of the values of a map; `true` allows any value. */
export function valueSchema(schema: Schema): Schema | undefined {
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

export function isMap(schema: Schema): boolean {
  return schema.additionalProperties !== undefined && schema.additionalProperties !== false;
}

/** Reports whether the schema does not describe nested values. */
export function isLeaf({ properties, additionalProperties, items }: Schema): boolean {
  return properties === undefined && additionalProperties === undefined && items === undefined;
}

/** A default of null counts as none, as in Kubernetes. */
export function hasDefault(schema: Schema): boolean {
  return schema.default !== undefined && schema.default !== null;
}

/** Returns the allowed JSON types; empty = any. */
export function typesOf(schema: Schema): readonly string[] {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string'];
  return schema.type === undefined ? [] : [schema.type];
}
