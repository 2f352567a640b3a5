/** Amounts of resources by name, as exact quantities, and the resources of a whole pod. Pure. */
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { addQuantities, findQuantityError, formatQuantity, parseQuantity, type Quantity } from '#kube/quantity.ts';

export type Amounts = ReadonlyMap<string, Quantity>;

type Quantities = Readonly<Record<string, string | number>> | undefined;

export const NO_AMOUNT: Quantity = { nanos: 0n, format: 'DecimalSI' };
export const ONE_OBJECT: Quantity = { nanos: 10n ** 9n, format: 'DecimalSI' };

/** Returns the valid quantities of a list; validation reports the others. */
export function amountsOf(quantities: Quantities): Map<string, Quantity> {
  const amounts = new Map<string, Quantity>();
  for (const [name, quantity] of Object.entries(quantities ?? {})) {
    if (findQuantityError(quantity) === undefined) amounts.set(name, parseQuantity(String(quantity)));
  }
  return amounts;
}

function addAmounts(to: Map<string, Quantity>, amounts: Amounts): void {
  for (const [name, amount] of amounts) to.set(name, addQuantities(to.get(name) ?? NO_AMOUNT, amount));
}

/** Raises each amount to at least the given one. */
function raiseAmounts(to: Map<string, Quantity>, amounts: Amounts): void {
  for (const [name, amount] of amounts) {
    const present = to.get(name);
    if (present === undefined || present.nanos < amount.nanos) to.set(name, amount);
  }
}

/** Formats amounts as Kubernetes' messages do: `limits.cpu=2,pods=1`. */
export function amountsText(amounts: Amounts): string {
  const pairs = [...amounts].map(([name, amount]) => `${name}=${formatQuantity(amount)}`);
  return pairs.sort().join(',');
}

/** The resources that a pod level of `resources` can set. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
}

/**
 * Returns the requests or limits of a pod. Containers and sidecars run at the same time; other init containers run before
 * them, one by one, next to the sidecars that were started by then. The pod needs the larger of the two amounts, at
 * least what it asks for as a whole, and its overhead. As in Kubernetes, the overhead counts only for limits that exist.
 */
export function podAmounts(spec: EnginePodSpec, list: 'requests' | 'limits'): Amounts {
  const total = new Map<string, Quantity>();
  const sidecars = new Map<string, Quantity>();
  const starting = new Map<string, Quantity>();
  for (const { resources } of spec.containers ?? []) addAmounts(total, amountsOf(resources?.[list]));
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    const own = amountsOf(resources?.[list]);
    if (restartPolicy === 'Always') {
      addAmounts(total, own);
      addAmounts(sidecars, own);
      raiseAmounts(starting, sidecars);
    } else {
      const together = new Map(sidecars);
      addAmounts(together, own);
      raiseAmounts(starting, together);
    }
  }
  raiseAmounts(total, starting);
  const whole = [...amountsOf(spec.resources?.[list])].filter(([name]) => isPodLevelResource(name));
  raiseAmounts(total, new Map(whole));
  const overhead = [...amountsOf(spec.overhead)].filter(([name]) => list === 'requests' || total.has(name));
  addAmounts(total, new Map(overhead));
  return total;
}
