/**
 * Counts what the objects of a namespace use of a quota, including writes in flight. Nothing is kept between two counts
 * except the measure of each stored version, so a count is always that of the stored objects: after a crash, after a
 * deletion, after a change of the quota.
 */
import { ONE_OBJECT, NO_AMOUNT } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import { amountsAt, type Measured, measureObject, plainCountNames } from '#engine/admission/limits/measure.ts';
import { type Quota, quotaOf, QUOTAS } from '#engine/admission/limits/quota.ts';
import { matchesScopes } from '#engine/admission/limits/scopes.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { addQuantities, type Quantity } from '#kube/quantity.ts';

/** Charges work to a user. Returns a promise for another turn if enough was done in this one (handlers/pace.ts). */
export type Spend = (units: number) => Promise<void> | undefined;

/** The time to add the measure of one object, in units of lib/fair-turns.ts. */
const ADD_UNITS = 8;
/** Fewer bytes are measured at once. */
const FEW_BYTES = 4096;

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
  if (isPlainCount(quota.scopes, collection, names)) {
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
function isPlainCount(scopes: Quota['scopes'], collection: string, names: readonly string[]): boolean {
  if (scopes.length > 0) return false;
  const plain = plainCountNames(collection);
  return names.every((name) => plain.includes(name));
}

/**
 * Measures the objects that quotas of a namespace will count, at the pace of the user, and charges the count. Returns
 * undefined if there is nothing to wait for, which is the usual case: all of them have been measured before.
 */
export function prepareCount(
  store: Store,
  quotas: readonly Quota[],
  { collection, spend }: { collection: string; spend: Spend },
): Promise<void> | undefined {
  const counting = quotas.filter(({ scopes, resources }) => {
    const names = resources.get(collection);
    return names !== undefined && !isPlainCount(scopes, collection, names);
  });
  if (counting.length === 0) return undefined;
  const entries = store.listLatest(collection, `${counting[0]!.namespace}/`);
  const turn = spend(entries.length * counting.length * ADD_UNITS);
  const unknown = entries.filter((entry) => !known.has(entry));
  const bytes = unknown.reduce((sum, entry) => sum + entry.bytes.length, 0);
  return bytes <= FEW_BYTES ? turn : measureInTurns(unknown, spend, turn);
}

async function measureInTurns(
  entries: readonly Entry[],
  spend: Spend,
  first: Promise<void> | undefined,
): Promise<void> {
  await first;
  for (const entry of entries) {
    const turn = spend(entry.bytes.length);
    if (turn !== undefined) await turn;
    measureEntry(entry);
  }
}

const POD_COUNT = 'count/pods';

/** Returns the next time after `nowMs` at which the use changes without a write, or undefined if there is none. */
export function nextChangeMs(store: Store, { namespace, resources }: Quota, nowMs: number): number | undefined {
  // A pod whose grace period has ended still counts as an object.
  if ((resources.get('pods') ?? []).every((name) => name === POD_COUNT)) return undefined;
  let next: number | undefined;
  for (const entry of store.listLatest('pods', `${namespace}/`)) {
    const { endsAtMs } = measureEntry(entry);
    if (endsAtMs !== undefined && endsAtMs >= nowMs && endsAtMs < (next ?? Infinity)) next = endsAtMs;
  }
  return next;
}
