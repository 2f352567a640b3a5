/** Which machine types the nodes offer, which VMs have them, and which VMs have one that nobody offers. Pure. */
import { machineTypesOf, type NodeMachineType } from '#api/machine-types/node-types.ts';
import { isFinal } from '#api/can.ts';
import { MACHINE_TYPE_LABEL_PREFIX } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { alignedTable } from '#cli/output-format.ts';
import type { Node } from '#kube/core-kinds.ts';

export interface OfferedType {
  readonly name: string;
  /** What nodes call it besides; nodes of another version may mean another one by the same word. */
  readonly aliases: readonly string[];
  /** Undefined where no node tells. */
  readonly deprecated: boolean | undefined;
  readonly nodes: readonly string[];
}

/** A VM, and the machine type that it has now, or will have at its next start. */
export interface UsedType {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly running: boolean;
}

export interface Supported {
  readonly types: readonly (OfferedType & { readonly allowed: boolean; readonly virtualMachines: number })[];
  /** On a type that no node offers. */
  readonly stranded: readonly UsedType[];
}

/** Labels alone tell no more than the name. */
type Told = Pick<NodeMachineType, 'name'> & Partial<NodeMachineType>;

/** By name, as people count: 6.2 before 10.0. */
export function offeredTypes(nodes: readonly Pick<Node, 'metadata'>[]): OfferedType[] {
  const told = nodes.flatMap((node) => typesOf(node).map((type) => ({ ...type, node: node.metadata.name ?? '' })));
  return [...Map.groupBy(told, ({ name }) => name)]
    .map(([name, all]) => {
      const known = all.filter(({ deprecated }) => deprecated !== undefined);
      return {
        name,
        aliases: [...new Set(all.flatMap(({ alias }) => (alias === undefined ? [] : [alias])))].toSorted(compare),
        deprecated: known.length === 0 ? undefined : known.some(({ deprecated }) => deprecated),
        nodes: [...new Set(all.map(({ node }) => node))].toSorted(compare),
      };
    })
    .toSorted((a, b) => compare(a.name, b.name));
}

/** What the annotation says, as far as the labels say it too: these are what counts for the scheduler. */
function typesOf(node: Pick<Node, 'metadata'>): Told[] {
  const labelled = new Set(
    Object.entries(node.metadata.labels ?? {}).flatMap(([key, value]) =>
      key.startsWith(MACHINE_TYPE_LABEL_PREFIX) && value === 'true'
        ? [key.slice(MACHINE_TYPE_LABEL_PREFIX.length)]
        : [],
    ),
  );
  const told = machineTypesOf(node).filter(({ name }) => labelled.has(name));
  const covered = new Set(told.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias])));
  return [...told, ...[...labelled].filter((name) => !covered.has(name)).map((name) => ({ name }))];
}

/** What a running one has, its instance knows; else what is asked for, or the default. */
export function usedType(
  { metadata, spec }: VirtualMachine,
  vmi: VirtualMachineInstance | undefined,
  defaultType: string,
): UsedType {
  const { namespace = '', name = '' } = metadata;
  const wanted = spec.template.spec?.domain.machine?.type || defaultType;
  const running = vmi !== undefined && !isFinal(vmi);
  return { namespace, name, type: (running && vmi.status?.machine?.type) || wanted, running };
}

/** `isAllowed`: whether the KubeVirt object lets VMs have it. */
export function supportedTypes(
  offered: readonly OfferedType[],
  used: readonly UsedType[],
  isAllowed: (type: string) => boolean,
): Supported {
  const counts = new Map<string, number>();
  const byWord = new Map(
    offered.flatMap(({ name, aliases }) => [name, ...aliases].map((word) => [word, name] as const)),
  );
  const stranded: UsedType[] = [];
  for (const one of used) {
    const name = byWord.get(one.type);
    if (name === undefined) stranded.push(one);
    else counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return {
    types: offered.map((type) => ({
      ...type,
      allowed: isAllowed(type.name),
      virtualMachines: counts.get(type.name) ?? 0,
    })),
    stranded: stranded.toSorted((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name)),
  };
}

export function supportedText({ types, stranded }: Supported): string {
  const rows = types.map(({ name, aliases, deprecated, allowed, nodes, virtualMachines }) => [
    name,
    aliases.join(',') || '-',
    deprecated === undefined ? '<unknown>' : deprecated ? 'yes' : 'no',
    allowed ? 'yes' : 'no',
    String(nodes.length),
    String(virtualMachines),
  ]);
  return [
    rows.length === 0
      ? 'No node offers any machine type.'
      : alignedTable([['MACHINE TYPE', 'ALIAS', 'DEPRECATED', 'ALLOWED', 'NODES', 'VMS'], ...rows]),
    '',
    ...(stranded.length === 0
      ? ['Every VM has a machine type that a node offers.']
      : [
          `${stranded.length === 1 ? '1 VM has a machine type' : `${stranded.length} VMs have machine types`} that no node offers:`,
          alignedTable([
            ['NAMESPACE', 'NAME', 'MACHINE TYPE', 'RUNNING'],
            ...stranded.map(({ namespace, name, type, running }) => [namespace, name, type, running ? 'yes' : 'no']),
          ]),
        ]),
  ].join('\n');
}

const order = new Intl.Collator('en', { numeric: true });
const compare = (a: string, b: string) => order.compare(a, b);
