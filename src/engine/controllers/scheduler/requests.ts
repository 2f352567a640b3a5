/**
 * What a pod asks for and a node has, as plain numbers: thousandths of a CPU, whole units of everything else. Rounded up,
 * as Kubernetes does; exact up to 2^53. Pure.
 */
import type { PodSpec } from '#engine/registry/kinds/shared/pod-spec.ts';
import { parseQuantity } from '#kube/quantity.ts';

export type Amounts = ReadonlyMap<string, number>;

export const CPU = 'cpu';
export const MEMORY = 'memory';
export const PODS = 'pods';

/** What a container counts for when the least used node is looked for, if it asks for nothing. */
const LEAST: Amounts = new Map([
  [CPU, 100],
  [MEMORY, 200 * 1024 * 1024],
]);
const NOTHING: Amounts = new Map();

type Quantities = Readonly<Record<string, string | number>> | undefined;

export function amountsOf(quantities: Quantities): Map<string, number> {
  const amounts = new Map<string, number>();
  for (const [name, quantity] of Object.entries(quantities ?? {})) amounts.set(name, amountOf(name, quantity));
  return amounts;
}

const MILLI_NANOS = 10n ** 6n;
const UNIT_NANOS = 10n ** 9n;

function amountOf(name: string, quantity: string | number): number {
  const { nanos } = parseQuantity(String(quantity));
  const unit = name === CPU ? MILLI_NANOS : UNIT_NANOS;
  const rounded = nanos <= 0n ? nanos / unit : (nanos + unit - 1n) / unit;
  return Math.min(Number(rounded), Number.MAX_SAFE_INTEGER);
}

/** What must be free on a node. */
export function podRequests(spec: PodSpec): Amounts {
  return sumOf(spec, NOTHING);
}

/** The same for scoring: also pods that ask for nothing take something. */
export function scoredRequests(spec: PodSpec): Amounts {
  return sumOf(spec, LEAST);
}

/**
 * All containers run at once, and with them the sidecars (init containers that restart always). Other init containers
 * run one by one before, beside the sidecars that were started by then: the pod needs whichever is more.
 */
function sumOf({ containers, initContainers = [], overhead }: PodSpec, least: Amounts): Amounts {
  const total = new Map<string, number>();
  const sidecars = new Map<string, number>();
  const starting = new Map<string, number>();
  for (const container of containers ?? []) add(total, requestsOf(container, least));
  for (const container of initContainers) {
    const own = requestsOf(container, least);
    if (container.restartPolicy === 'Always') {
      add(total, own);
      add(sidecars, own);
      raise(starting, sidecars);
    } else {
      const together = new Map(sidecars);
      add(together, own);
      raise(starting, together);
    }
  }
  raise(total, starting);
  add(total, amountsOf(overhead));
  return total;
}

type Container = NonNullable<PodSpec['containers']>[number];

function requestsOf({ resources }: Container, least: Amounts): Amounts {
  const amounts = amountsOf(resources?.requests);
  for (const [name, amount] of least) if (!amounts.has(name)) amounts.set(name, amount);
  return amounts;
}

export function add(to: Map<string, number>, amounts: Amounts, times: 1 | -1 = 1): void {
  for (const [name, amount] of amounts) to.set(name, (to.get(name) ?? 0) + times * amount);
}

function raise(to: Map<string, number>, amounts: Amounts): void {
  for (const [name, amount] of amounts) to.set(name, Math.max(to.get(name) ?? 0, amount));
}
