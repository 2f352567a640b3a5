/** Reads the machine types of nodes from MACHINE_TYPES_ANNOTATION. Pure. */
import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import type { Node } from '#kube/core-kinds.ts';
import { isRecord } from '#kube/meta.ts';

export interface NodeMachineType {
  readonly name: string;
  readonly alias?: string;
  readonly deprecated: boolean;
}

/** Returns no types if the annotation cannot be read. */
export function machineTypesOf({ metadata }: Pick<Node, 'metadata'>): NodeMachineType[] {
  let list: unknown;
  try {
    list = JSON.parse(metadata.annotations?.[MACHINE_TYPES_ANNOTATION] ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  return list
    .filter(isRecord)
    .flatMap(({ name, alias, deprecated }) =>
      typeof name !== 'string'
        ? []
        : [{ name, ...(typeof alias === 'string' && alias !== '' && { alias }), deprecated: deprecated === true }],
    );
}

/** Returns a function that resolves a name or alias to its type; undefined if no node knows it or nodes disagree. */
export function canonicalTypes(nodes: readonly Pick<Node, 'metadata'>[]): (nameOrAlias: string) => string | undefined {
  const typesByName = new Map<string, Set<string>>();
  for (const { name, alias } of nodes.flatMap(machineTypesOf)) {
    for (const nameOrAlias of alias === undefined ? [name] : [name, alias]) {
      typesByName.set(nameOrAlias, (typesByName.get(nameOrAlias) ?? new Set()).add(name));
    }
  }
  return (nameOrAlias) => {
    const [type, ...others] = typesByName.get(nameOrAlias) ?? [];
    return others.length === 0 ? type : undefined;
  };
}
