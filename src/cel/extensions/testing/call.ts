/** Calls library functions with plain values, as the evaluator does, and converts the results to plain values. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from '#cel/limits/budget.ts';
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { EntryMap } from '#cel/evaluate/entry-map.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import type { Library, Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';
import { CelFault, CelList, CelMap, CelOptional, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

export const list = (...items: CelValue[]): CelList => new ArrayList(items);

export function map(...entries: [CelValue, CelValue][]): CelMap {
  const result = EntryMap.of(entries);
  assert.ok(result instanceof EntryMap);
  return result;
}

export const uint = (value: bigint): CelUint => new CelUint(value);
export const fault = (message: string) => ({ fault: message });
export const none = { optional: undefined };

export function call(library: Library, name: string, args: readonly CelValue[], budget = new Budget(1_000_000)) {
  const overload = library.functions?.[name]?.find((known) => acceptsArgs(known, args));
  assert.ok(overload !== undefined, `${name} takes ${args.map((arg) => typeOfValue(arg).name).join(', ')}`);
  return overload.call(args, budget);
}

/** Returns a receiver or argument that a function creates: `callForValue(ipLibrary, 'ip', ['::1'])`. */
export function callForValue(library: Library, name: string, args: readonly CelValue[]): CelValue {
  const result = call(library, name, args);
  assert.ok(!(result instanceof CelFault), result instanceof CelFault ? result.message : '');
  return result;
}

function acceptsArgs({ args }: Overload, values: readonly CelValue[]): boolean {
  return args.length === values.length && args.every((type, i) => hasType(type, values[i] as CelValue));
}

function hasType(type: CelType, value: CelValue): boolean {
  if (type.kind === 'param' || (type.kind === 'primitive' && type.name === 'dyn')) return true;
  const { name } = typeOfValue(value);
  return type.kind === 'primitive' || type.kind === 'opaque' ? type.name === name : type.kind === name;
}

export function plain(value: CelValue | CelFault | undefined): unknown {
  if (value instanceof CelFault) return fault(value.message);
  if (value instanceof CelUint) return { uint: value.value };
  if (value instanceof CelOptional) return { optional: plain(value.value) };
  if (value instanceof CelList) return Array.from({ length: value.size }, (_, i) => plain(value.at(i)));
  if (value instanceof CelMap) return new Map([...value.keys()].map((key) => [plain(key), plain(value.get(key))]));
  return value;
}

/** The function, its arguments, and the expected result. */
export type CallCase = readonly [name: string, args: readonly CelValue[], want: unknown];

export function testCalls(library: Library, cases: Record<string, CallCase>): void {
  for (const [sentence, [name, args, want]] of Object.entries(cases)) {
    test(sentence, () => assert.deepEqual(plain(call(library, name, args)), want));
  }
}

/** Returns the units that one call takes. */
export function costOf(library: Library, name: string, args: readonly CelValue[]): number {
  const budget = new Budget(1e9);
  call(library, name, args, budget);
  return 1e9 - budget.left;
}
