/** What the walkers read out of a schema in the same way. */
import type { Schema } from '#kube/schema.ts';

/** They belong to the object, not to its schema: registry/metadata.ts sees to them. */
export const OBJECT_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** A Map, because a key from input must never meet Object.prototype. `__proto__` is nobody's field. */
export function propertiesOf<T>(schema: Schema, compile: (property: Schema, name: string) => T): Map<string, T> {
  const compiled = new Map<string, T>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (name !== '__proto__') compiled.set(name, compile(property, name));
  }
  return compiled;
}

/** The schema of the values of a map; `true` allows any value without saying more. */
export function valueSchema(schema: Schema): Schema | undefined {
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

export function isMap(schema: Schema): boolean {
  return schema.additionalProperties !== undefined && schema.additionalProperties !== false;
}

/** Nothing is known inside of its values. */
export function isLeaf({ properties, additionalProperties, items }: Schema): boolean {
  return properties === undefined && additionalProperties === undefined && items === undefined;
}

/** A default of null is no default, as in Kubernetes. */
export function hasDefault(schema: Schema): boolean {
  return schema.default !== undefined && schema.default !== null;
}

/** The JSON types that a value may have; empty means any. */
export function typesOf(schema: Schema): readonly string[] {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string'];
  return schema.type === undefined ? [] : [schema.type];
}
