/** Which VirtualMachines have the same firmware uuid, and how that is shown. Pure. */
import { isRecord } from '#kube/meta.ts';

/** A VirtualMachine that has a uuid. */
export interface Holder {
  /** In lower case: as guests see it, both cases are the same. */
  readonly uuid: string;
  readonly namespace: string;
  readonly name: string;
  readonly status: string;
}

export interface Duplicate {
  readonly uuid: string;
  /** Two or more, by namespace and name. */
  readonly holders: readonly Holder[];
}

/** Undefined for one without a uuid, and for one that is being deleted: that one gives its uuid up. */
export function holderOf(vm: unknown): Holder | undefined {
  const uuid = textAt(vm, 'spec', 'template', 'spec', 'domain', 'firmware', 'uuid').toLowerCase();
  if (uuid === '' || textAt(vm, 'metadata', 'deletionTimestamp') !== '') return undefined;
  const namespace = textAt(vm, 'metadata', 'namespace');
  return { uuid, namespace, name: textAt(vm, 'metadata', 'name'), status: textAt(vm, 'status', 'printableStatus') };
}

/** By uuid; with a namespace only those that a VM of it takes part in. */
export function duplicatesOf(holders: readonly Holder[], namespace?: string): Duplicate[] {
  return [...Map.groupBy(holders, ({ uuid }) => uuid)]
    .map(([uuid, sharing]) => ({ uuid, holders: sharing.toSorted(byNamespaceAndName) }))
    .filter((one) => one.holders.length > 1)
    .filter((one) => namespace === undefined || one.holders.some((holder) => holder.namespace === namespace))
    .toSorted((a, b) => compare(a.uuid, b.uuid));
}

/** As kubectl aligns: columns of the width of their longest cell, three spaces between. */
export function duplicatesTable(duplicates: readonly Duplicate[]): string {
  const cells = duplicates.flatMap(({ holders }) =>
    holders.map(({ uuid, namespace, name, status }) => [uuid, namespace, name, status === '' ? '<none>' : status]),
  );
  const rows = [['UUID', 'NAMESPACE', 'NAME', 'STATUS'], ...cells];
  // Not Math.max(...): a fleet may have more rows than a call may have arguments.
  const widths = rows.reduce(
    (width, row) => row.map((cell, i) => Math.max(cell.length, width[i] ?? 0)),
    [] as number[],
  );
  return rows.map((row) => row.map((cell, i) => cell.padEnd(i < 3 ? widths[i]! + 3 : 0)).join('')).join('\n');
}

export function duplicatesAsJson(duplicates: readonly Duplicate[]): string {
  const shown = duplicates.map(({ uuid, holders }) => ({
    uuid,
    virtualMachines: holders.map(({ namespace, name }) => ({ namespace, name })),
  }));
  return JSON.stringify(shown, undefined, 4);
}

const byNamespaceAndName = (a: Holder, b: Holder) => compare(a.namespace, b.namespace) || compare(a.name, b.name);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** '' where there is no text. */
function textAt(object: unknown, ...path: string[]): string {
  let value = object;
  for (const key of path) value = isRecord(value) ? value[key] : undefined;
  return typeof value === 'string' ? value : '';
}
