/** Warns about duplicate firmware UUIDs. They are allowed, because a user may want them. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

/** Maximum number of VMs in the warnings. */
const MAX_NAMED = 3;

export interface UuidHolder {
  readonly namespace: string;
  readonly name: string;
}

export interface UuidLookup {
  vmsWithUuid(uuid: string): readonly UuidHolder[];
}

/** Names VMs of the same namespace only: the user may not be allowed to see others. */
export function warnAboutDuplicates({ metadata, spec }: VirtualMachine, lookup: UuidLookup): string[] {
  const uuid = spec.template?.spec?.domain?.firmware?.uuid;
  if (!uuid || metadata.deletionTimestamp !== undefined) return [];
  const others = lookup
    .vmsWithUuid(uuid)
    .filter(({ namespace, name }) => namespace !== metadata.namespace || name !== metadata.name);
  const inNamespace = others.filter(({ namespace }) => namespace === metadata.namespace).map(({ name }) => name);
  return [
    ...inNamespace
      .toSorted()
      .slice(0, MAX_NAMED)
      .map((name) => `firmware uuid ${uuid} is also that of VirtualMachine "${name}"`),
    ...(inNamespace.length < others.length
      ? [`firmware uuid ${uuid} is also that of a VirtualMachine in another namespace`]
      : []),
  ];
}
