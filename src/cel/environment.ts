/**
 * An environment for compiling expressions: the functions that they can call, and the variables and types that they can
 * name.
 */
import type { Library, Macro, Overload } from '#cel/library.ts';
import { typeNames } from '#cel/evaluate/type-of.ts';
import type { CelType } from '#cel/type.ts';
import { CelTypeValue, type CelFault, type CelValue } from '#cel/value.ts';

export interface Environment {
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  readonly macros: readonly Macro[];
  readonly variables: ReadonlyMap<string, CelType>;
  readonly types: ReadonlyMap<string, CelTypeValue>;
}

export function createEnvironment(
  libraries: readonly Library[],
  variables: Readonly<Record<string, CelType>> = {},
): Environment {
  const functions = new Map<string, Overload[]>();
  for (const library of libraries) {
    for (const [name, overloads] of Object.entries(library.functions ?? {})) {
      functions.set(name, [...(functions.get(name) ?? []), ...overloads]);
    }
  }
  const macros = libraries.flatMap((library) => library.macros ?? []);
  const types = new Map(typeNames);
  for (const type of libraries.flatMap((library) => library.types ?? [])) {
    types.set(type.name, new CelTypeValue(type.name, type));
  }
  return { functions, macros, variables: new Map(Object.entries(variables)), types };
}

/** Returns the environment with these variables added or replaced. */
export function withVariables(environment: Environment, variables: Readonly<Record<string, CelType>>): Environment {
  return { ...environment, variables: new Map([...environment.variables, ...Object.entries(variables)]) };
}

/**
 * Returns the value of a variable in one evaluation. Called only for variables that the evaluation needs. A variable
 * without a value (undefined) is a fault.
 */
export type Activation = (name: string) => CelValue | CelFault | undefined;
