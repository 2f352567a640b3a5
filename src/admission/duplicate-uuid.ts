/** Two machines with one identity are allowed, for somebody may want just that; but whoever makes them is told. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

/** Nobody reads more. */
const MAX_NAMED = 3;

export interface VmName {
  readonly namespace: string;
  readonly name: string;
}

export interface UuidLookup {
  vmsWithUuid(uuid: string): readonly VmName[];
}

/** Names of other namespaces are not everybody's to know. */
export function duplicateWarnings({ metadata, spec }: VirtualMachine, lookup: UuidLookup): string[] {
  const uuid = spec.template?.spec?.domain?.firmware?.uuid;
  if (!uuid || metadata.deletionTimestamp !== undefined) return [];
  const others = lookup
    .vmsWithUuid(uuid)
    .filter(({ namespace, name }) => namespace !== metadata.namespace || name !== metadata.name);
  const near = others.filter(({ namespace }) => namespace === metadata.namespace).map(({ name }) => name);
  return [
    ...near
      .toSorted()
      .slice(0, MAX_NAMED)
      .map((name) => `firmware uuid ${uuid} is also that of VirtualMachine "${name}"`),
    ...(near.length < others.length
      ? [`firmware uuid ${uuid} is also that of a VirtualMachine in another namespace`]
      : []),
  ];
}
