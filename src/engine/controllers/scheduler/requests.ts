/**
 * The requests of pods and the capacity of nodes as plain numbers: thousandths of a CPU, whole units of everything else.
 * Rounded up as in Kubernetes, exact up to 2^53. Pure.
 */
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { parseQuantity } from '#kube/quantity.ts';

export type ResourceAmounts = ReadonlyMap<string, number>;

export const CPU = 'cpu';
export const MEMORY = 'memory';
export const POD_COUNT = 'pods';

/** The assumed requests, for scoring only, of a container that requests nothing. */
const SCORED_DEFAULTS: ResourceAmounts = new Map([
  [CPU, 100],
  [MEMORY, 200 * 1024 * 1024],
]);
const NO_DEFAULTS: ResourceAmounts = new Map();

type Quantities = Readonly<Record<string, string | number>> | undefined;

export function parseAmounts(quantities: Quantities): Map<string, number> {
  const amounts = new Map<string, number>();
  for (const [name, quantity] of Object.entries(quantities ?? {})) amounts.set(name, parseAmount(name, quantity));
  return amounts;
}

const MILLI_NANOS = 10n ** 6n;
const UNIT_NANOS = 10n ** 9n;

function parseAmount(name: string, quantity: string | number): number {
  const { nanos } = parseQuantity(String(quantity));
  const unit = name === CPU ? MILLI_NANOS : UNIT_NANOS;
  const rounded = nanos <= 0n ? nanos / unit : (nanos + unit - 1n) / unit;
  return Math.min(Number(rounded), Number.MAX_SAFE_INTEGER);
}

/** Returns the resources that must be free on a node. */
export function podRequests(spec: EnginePodSpec): ResourceAmounts {
  return sumRequests(spec, NO_DEFAULTS);
}

/** Returns the resources that count for scoring. Containers without requests count with defaults. */
export function scoredRequests(spec: EnginePodSpec): ResourceAmounts {
  return sumRequests(spec, SCORED_DEFAULTS);
}

/**
 * All containers and sidecars (init containers with restartPolicy Always) run at the same time. Other init containers run
 * before them, one by one, next to the sidecars that were started by then. The pod needs the larger of the two amounts.
 */
function sumRequests(
  { containers, initContainers = [], overhead }: EnginePodSpec,
  defaults: ResourceAmounts,
): ResourceAmounts {
  const total = new Map<string, number>();
  const sidecars = new Map<string, number>();
  const starting = new Map<string, number>();
  for (const container of containers ?? []) addResourceAmounts(total, containerRequests(container, defaults));
  for (const container of initContainers) {
    const own = containerRequests(container, defaults);
    if (container.restartPolicy === 'Always') {
      addResourceAmounts(total, own);
      addResourceAmounts(sidecars, own);
      raiseResourceAmounts(starting, sidecars);
    } else {
      const together = new Map(sidecars);
      addResourceAmounts(together, own);
      raiseResourceAmounts(starting, together);
    }
  }
  raiseResourceAmounts(total, starting);
  addResourceAmounts(total, parseAmounts(overhead));
  return total;
}

type Container = NonNullable<EnginePodSpec['containers']>[number];

function containerRequests({ resources }: Container, defaults: ResourceAmounts): ResourceAmounts {
  const amounts = parseAmounts(resources?.requests);
  for (const [name, amount] of defaults) if (!amounts.has(name)) amounts.set(name, amount);
  return amounts;
}

export function addResourceAmounts(to: Map<string, number>, amounts: ResourceAmounts, times: 1 | -1 = 1): void {
  for (const [name, amount] of amounts) to.set(name, (to.get(name) ?? 0) + times * amount);
}

/** Raises each amount to at least the given one. */
function raiseResourceAmounts(to: Map<string, number>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) to.set(name, Math.max(to.get(name) ?? 0, amount));
}
