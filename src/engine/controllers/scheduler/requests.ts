/**
 * The requests of pods and the capacity of nodes as plain numbers: thousandths of a CPU, whole units of everything else.
 * Rounded up as in Kubernetes, exact up to 2^53. Pure.
 */
import { type Amounts, amountsOf, podAmounts } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { parseQuantity, type Quantity } from '#kube/quantity.ts';

export type ResourceAmounts = ReadonlyMap<string, number>;

export const CPU = 'cpu';
export const MEMORY = 'memory';
export const POD_COUNT = 'pods';

/** The assumed requests, for scoring only, of a container that requests nothing. */
const SCORED_DEFAULTS: Amounts = amountsOf({ [CPU]: '100m', [MEMORY]: '200Mi' });

type Quantities = Readonly<Record<string, string | number>> | undefined;

export function parseAmounts(quantities: Quantities): Map<string, number> {
  const amounts = new Map<string, number>();
  for (const [name, quantity] of Object.entries(quantities ?? {})) amounts.set(name, parseAmount(name, quantity));
  return amounts;
}

const MILLI_NANOS = 10n ** 6n;
const UNIT_NANOS = 10n ** 9n;

function parseAmount(name: string, quantity: string | number): number {
  return roundAmount(name, parseQuantity(String(quantity)));
}

function roundAmount(name: string, { nanos }: Quantity): number {
  const unit = name === CPU ? MILLI_NANOS : UNIT_NANOS;
  const rounded = nanos <= 0n ? nanos / unit : (nanos + unit - 1n) / unit;
  return Math.min(Number(rounded), Number.MAX_SAFE_INTEGER);
}

/** Returns the resources that must be free on a node. */
export function podRequests(spec: EnginePodSpec): ResourceAmounts {
  return roundAmounts(podAmounts(spec, 'requests'));
}

/** Returns the resources that count for scoring. Containers without requests count with defaults. */
export function scoredRequests(spec: EnginePodSpec): ResourceAmounts {
  return roundAmounts(podAmounts(spec, 'requests', SCORED_DEFAULTS));
}

function roundAmounts(amounts: Amounts): ResourceAmounts {
  return new Map([...amounts].map(([name, amount]) => [name, roundAmount(name, amount)]));
}

export function addResourceAmounts(to: Map<string, number>, amounts: ResourceAmounts, times: 1 | -1 = 1): void {
  for (const [name, amount] of amounts) to.set(name, (to.get(name) ?? 0) + times * amount);
}
