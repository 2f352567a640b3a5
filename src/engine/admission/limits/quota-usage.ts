/**
 * Counts what the objects of a namespace use of a quota, including writes in flight. Nothing is kept between two counts
 * except the measure of each stored version, so a count is always that of the stored objects: after a crash, after a
 * deletion, after a change of the quota.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ONE_OBJECT, NO_AMOUNT } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import { amountsAt, type Measured, measureObject, plainCountNames } from '#engine/admission/limits/measure.ts';
import { type Quota, quotaOf, QUOTAS } from '#engine/admission/limits/quota.ts';
import { matchesScopes } from '#engine/admission/limits/scopes.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { addQuantities, type Quantity } from '#kube/quantity.ts';

/** The number of objects that are measured in one turn of the event loop. */
const MEASURED_PER_TURN = 100;

const known = new WeakMap<Entry, Measured>();

/** Returns the measure of a stored version, computed once. */
export function measureEntry(entry: Entry): Measured {
  let measured = known.get(entry);
  if (measured === undefined) {
    measured = measureObject(entry.collection, decodeStored(entry.bytes));
    known.set(entry, measured);
  }
  return measured;
}

/** Returns the quotas of a namespace, by name. */
export function quotasOf(store: Store, namespace: string): readonly Quota[] {
  const { entries } = store.list(QUOTAS, { prefix: `${namespace}/` });
  return entries.length === 0 ? NO_QUOTAS : entries.map(quotaOf);
}

const NO_QUOTAS: readonly Quota[] = [];

/** Returns the use of the given resources, all of which objects of this collection use. */
export function countUse(
  store: Store,
  quota: Quota,
  { collection, names, nowMs }: { collection: string; names: readonly string[]; nowMs: number },
): Map<string, Quantity> {
  const entries = store.listLatest(collection, `${quota.namespace}/`);
  const used = new Map<string, Quantity>(names.map((name) => [name, NO_AMOUNT]));
  if (isPlainCount(quota, collection, names)) {
    const count: Quantity = { nanos: BigInt(entries.length) * ONE_OBJECT.nanos, format: 'DecimalSI' };
    for (const name of names) used.set(name, count);
    return used;
  }
  for (const entry of entries) {
    const measured = measureEntry(entry);
    if (!matchesScopes(measured.facts, quota.scopes)) continue;
    const amounts = amountsAt(measured, nowMs);
    for (const name of names) {
      const amount = amounts.get(name);
      if (amount !== undefined) used.set(name, addQuantities(used.get(name)!, amount));
    }
  }
  return used;
}

/** Reports whether the number of objects is all that has to be known. */
function isPlainCount({ scopes }: Quota, collection: string, names: readonly string[]): boolean {
  if (scopes.length > 0) return false;
  const plain = plainCountNames(collection);
  return names.every((name) => plain.includes(name));
}

/**
 * Measures the objects that quotas of a namespace will count, a few in each turn of the event loop. Returns undefined if
 * all of them have been measured before, which is the usual case.
 */
export function prepareCount(store: Store, quotas: readonly Quota[], collection: string): Promise<void> | undefined {
  const counted = quotas.find(({ scopes, resources }) => {
    const names = resources.get(collection);
    return names !== undefined && !isPlainCount({ scopes } as Quota, collection, names);
  });
  if (counted === undefined) return undefined;
  const entries = store.listLatest(collection, `${counted.namespace}/`).filter((entry) => !known.has(entry));
  return entries.length <= MEASURED_PER_TURN ? undefined : measureInTurns(entries);
}

async function measureInTurns(entries: readonly Entry[]): Promise<void> {
  for (let i = 0; i < entries.length; i++) {
    measureEntry(entries[i]!);
    if (i % MEASURED_PER_TURN === MEASURED_PER_TURN - 1) await nextTurn();
  }
}

/** Returns the next time after `nowMs` at which the use changes without a write, or undefined if there is none. */
export function nextChangeMs(store: Store, { namespace, resources }: Quota, nowMs: number): number | undefined {
  if (!resources.has('pods')) return undefined;
  const ends = store
    .listLatest('pods', `${namespace}/`)
    .map((entry) => measureEntry(entry).endsAtMs)
    .filter((endsAtMs) => endsAtMs !== undefined && endsAtMs >= nowMs) as number[];
  return ends.length === 0 ? undefined : Math.min(...ends);
}
