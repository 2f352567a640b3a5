/** What nodes tell of their machine types in MACHINE_TYPES_ANNOTATION. Pure. */
import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import type { Node } from '#kube/core-kinds.ts';
import { isRecord } from '#kube/meta.ts';

export interface NodeMachineType {
  readonly name: string;
  readonly alias?: string;
  readonly deprecated: boolean;
}

/** What cannot be read says nothing. */
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

/** What a word stands for on every node that knows it; undefined where they differ, or none does. */
export function canonicalTypes(nodes: readonly Pick<Node, 'metadata'>[]): (word: string) => string | undefined {
  const meanings = new Map<string, Set<string>>();
  for (const { name, alias } of nodes.flatMap(machineTypesOf)) {
    for (const word of alias === undefined ? [name] : [name, alias]) {
      meanings.set(word, (meanings.get(word) ?? new Set()).add(name));
    }
  }
  return (word) => {
    const [meaning, ...others] = meanings.get(word) ?? [];
    return others.length === 0 ? meaning : undefined;
  };
}
