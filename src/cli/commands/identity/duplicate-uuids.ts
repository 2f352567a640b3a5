/** Finds and prints VirtualMachines that share a firmware uuid. Pure. */
import { isRecord } from '#kube/meta.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { compareText } from '#lib/text/compare-text.ts';

/** A VirtualMachine of a list. */
export interface ListedVm {
  readonly namespace: string;
  readonly name: string;
  readonly status: string;
}

/** A VirtualMachine that has a uuid. */
export interface ListedUuidHolder extends ListedVm {
  /** In lower case; guests do not distinguish case. */
  readonly uuid: string;
}

interface Duplicate {
  readonly uuid: string;
  /** Two or more, by namespace and name. */
  readonly holders: readonly ListedUuidHolder[];
}

/** Returns undefined for a VM without a uuid or under deletion, which releases its uuid. */
export function toListedUuidHolder(vm: unknown): ListedUuidHolder | undefined {
  const uuid = textAt(vm, 'spec', 'template', 'spec', 'domain', 'firmware', 'uuid').toLowerCase();
  if (uuid === '' || textAt(vm, 'metadata', 'deletionTimestamp') !== '') return undefined;
  const namespace = textAt(vm, 'metadata', 'namespace');
  return { uuid, namespace, name: textAt(vm, 'metadata', 'name'), status: textAt(vm, 'status', 'printableStatus') };
}

/** Returns duplicates by uuid; with a namespace, only those that involve a VM in it. */
export function findUuidDuplicates(holders: readonly ListedUuidHolder[], namespace?: string): Duplicate[] {
  return groupDuplicates(holders, ({ uuid }) => uuid, namespace).map(([uuid, sharing]) => ({ uuid, holders: sharing }));
}

/** Returns the values that two or more holders have, with these, sorted. */
export function groupDuplicates<T extends ListedVm>(
  holders: readonly T[],
  valueOf: (holder: T) => string,
  namespace?: string,
): [value: string, holders: readonly T[]][] {
  return [...Map.groupBy(holders, valueOf)]
    .filter(([, sharing]) => sharing.length > 1)
    .filter(([, sharing]) => namespace === undefined || sharing.some((holder) => holder.namespace === namespace))
    .map(([value, sharing]): [string, readonly T[]] => [value, sharing.toSorted(byNamespaceAndName)])
    .toSorted(([a], [b]) => compareText(a, b));
}

export function duplicatesTable(duplicates: readonly Duplicate[]): string {
  const rows = duplicates.flatMap(({ holders }) =>
    holders.map(({ uuid, namespace, name, status }) => [uuid, namespace, name, status === '' ? '<none>' : status]),
  );
  return alignedTable([['UUID', 'NAMESPACE', 'NAME', 'STATUS'], ...rows]);
}

/** Returns the value for JSON and YAML output. */
export function duplicatesAsValue(duplicates: readonly Duplicate[]): unknown[] {
  return duplicates.map(({ uuid, holders }) => ({
    uuid,
    virtualMachines: holders.map(({ namespace, name }) => ({ namespace, name })),
  }));
}

const byNamespaceAndName = (a: ListedVm, b: ListedVm) =>
  compareText(a.namespace, b.namespace) || compareText(a.name, b.name);

/** Returns the string at the path, or ''. */
export function textAt(object: unknown, ...path: string[]): string {
  let value = object;
  for (const key of path) value = isRecord(value) ? value[key] : undefined;
  return typeof value === 'string' ? value : '';
}
