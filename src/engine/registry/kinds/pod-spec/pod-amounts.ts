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

type Container = NonNullable<EnginePodSpec['containers']>[number];
type ResourceList = 'requests' | 'limits';

/**
 * Returns the requests or limits of a pod. Containers and sidecars (init containers with restartPolicy Always) run at the
 * same time; other init containers run before them, one by one, next to the sidecars that were started by then. The pod
 * needs the larger of the two amounts, at least what it asks for as a whole, and its overhead. As in Kubernetes, the
 * overhead counts only for limits that exist. A container counts with `defaults` for what it does not name.
 */
export function podAmounts(spec: EnginePodSpec, list: ResourceList, defaults: Amounts = NO_AMOUNTS): Amounts {
  const amountsOfContainer = ({ resources }: Pick<Container, 'resources'>) => {
    const own = amountsOf(resources?.[list]);
    for (const [name, amount] of defaults) if (!own.has(name)) own.set(name, amount);
    return own;
  };
  const total = new Map<string, Quantity>();
  const sidecars = new Map<string, Quantity>();
  const starting = new Map<string, Quantity>();
  for (const container of spec.containers ?? []) addAmounts(total, amountsOfContainer(container));
  for (const container of spec.initContainers ?? []) {
    const own = amountsOfContainer(container);
    if (container.restartPolicy === 'Always') {
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
  raiseAmounts(total, wholeAmounts(spec, list, total));
  for (const [name, amount] of amountsOf(spec.overhead)) {
    // Validation refuses a negative overhead; a pod that was stored before does not make room for others.
    if (amount.nanos > 0n && (list === 'requests' || total.has(name))) addAmounts(total, new Map([[name, amount]]));
  }
  return total;
}

const NO_AMOUNTS: Amounts = new Map();

/** Returns what the pod asks for as a whole. As in Kubernetes, a limit is also the request if nothing else requests it. */
function wholeAmounts({ resources }: EnginePodSpec, list: ResourceList, requested: Amounts): Amounts {
  const whole = amountsOf(resources?.[list]);
  if (list === 'requests') {
    for (const [name, limit] of amountsOf(resources?.limits)) {
      if (!whole.has(name) && !requested.has(name)) whole.set(name, limit);
    }
  }
  return new Map([...whole].filter(([name, { nanos }]) => isPodLevelResource(name) && nanos > 0n));
}
