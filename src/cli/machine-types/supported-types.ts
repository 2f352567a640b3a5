/** Lists the machine types that nodes offer and VMs use, and the VMs whose type no node offers. Pure. */
import { machineTypesOf, type NodeMachineType } from '#api/machine-types/node-types.ts';
import { MACHINE_TYPE_LABEL_PREFIX } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { Node } from '#kube/core-kinds.ts';

export interface OfferedType {
  readonly name: string;
  /** Aliases of the type. Nodes with another version may use the same alias for another type. */
  readonly aliases: readonly string[];
  /** undefined if no node reports it. */
  readonly deprecated: boolean | undefined;
  readonly nodes: readonly string[];
}

/** A VM with its current machine type, or that of its next start if it does not run. */
interface UsedType {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly running: boolean;
}

interface Supported {
  readonly types: readonly (OfferedType & { readonly allowed: boolean; readonly virtualMachines: number })[];
  /** VMs with a type that no node offers. */
  readonly stranded: readonly UsedType[];
}

/** A type as a node reports it. Only the name is known if it comes from a label. */
type ReportedType = Pick<NodeMachineType, 'name'> & Partial<NodeMachineType>;

/** Returns the types in natural order: 6.2 before 10.0. */
export function offeredTypes(nodes: readonly Pick<Node, 'metadata'>[]): OfferedType[] {
  const reported = nodes.flatMap((node) => typesOf(node).map((type) => ({ ...type, node: node.metadata.name ?? '' })));
  return [...Map.groupBy(reported, ({ name }) => name)]
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

/** Returns the types in the annotation that also have a label. The scheduler uses the labels. */
function typesOf(node: Pick<Node, 'metadata'>): ReportedType[] {
  const labelled = new Set(
    Object.entries(node.metadata.labels ?? {}).flatMap(([key, value]) =>
      key.startsWith(MACHINE_TYPE_LABEL_PREFIX) && value === 'true'
        ? [key.slice(MACHINE_TYPE_LABEL_PREFIX.length)]
        : [],
    ),
  );
  const reported = machineTypesOf(node).filter(({ name }) => labelled.has(name));
  const covered = new Set(reported.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias])));
  return [...reported, ...[...labelled].filter((name) => !covered.has(name)).map((name) => ({ name }))];
}

/** Returns the type of the running instance, or else the type in the spec or the default. */
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

/** `isAllowed` reports whether the KubeVirt object permits a type. */
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
