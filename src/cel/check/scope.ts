/** Resolves names: variables of the enclosing folds first, then variables of the environment, then types. */
import type { Environment } from '#cel/environment.ts';
import type { CelType } from '#cel/type.ts';
import { typeOf } from '#cel/type.ts';

/** The innermost variable, linked to the enclosing ones. */
export interface Scope {
  readonly name: string;
  readonly type: CelType;
  readonly outer: Scope | undefined;
}

export function findLocal(scope: Scope | undefined, name: string): CelType | undefined {
  for (let at = scope; at; at = at.outer) if (at.name === name) return at.type;
  return undefined;
}

/** A leading dot skips the variables of folds. */
export function findName(environment: Environment, scope: Scope | undefined, name: string): CelType | undefined {
  const absolute = name.startsWith('.');
  const local = absolute ? undefined : findLocal(scope, name);
  if (local) return local;
  const known = absolute ? name.slice(1) : name;
  const type = environment.types.get(known);
  return environment.variables.get(known) ?? (type && typeOf(type.type));
}
