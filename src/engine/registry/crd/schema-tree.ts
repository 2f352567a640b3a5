/** Walks through the nested schemas of a schema, with the paths that Kubernetes uses for them. */
import type { Schema } from '#kube/schema.ts';
import { isRecord } from '#kube/meta.ts';

export interface Branch {
  readonly schema: Schema;
  readonly path: string;
}

/** Returns the schemas of nested values: `properties[spec]`, `items`, `additionalProperties`. */
export function structuralBranches(schema: Schema, path: string): Branch[] {
  const branches: Branch[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    branches.push({ schema: property, path: `${path}.properties[${name}]` });
  }
  if (schema.items !== undefined) branches.push({ schema: schema.items, path: `${path}.items` });
  if (isRecord(schema.additionalProperties)) {
    branches.push({ schema: schema.additionalProperties, path: `${path}.additionalProperties` });
  }
  return branches;
}

/** Returns the further schemas of the same value: `anyOf[0]`, `not` ... */
export function ruleBranches(schema: Schema, path: string): Branch[] {
  const branches: Branch[] = [];
  for (const keyword of ['anyOf', 'allOf', 'oneOf'] as const) {
    for (const [i, part] of (schema[keyword] ?? []).entries()) {
      branches.push({ schema: part, path: `${path}.${keyword}[${i}]` });
    }
  }
  if (schema.not !== undefined) branches.push({ schema: schema.not, path: `${path}.not` });
  return branches;
}

export function allBranches(schema: Schema, path: string): Branch[] {
  return [...structuralBranches(schema, path), ...ruleBranches(schema, path)];
}
