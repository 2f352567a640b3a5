/** Kubernetes' limits on the estimated cost of the rules of a definition, with its messages. */
import { type FieldError, forbiddenField } from '#kube/field-error.ts';

const MAX_COST = 10_000_000;
const MAX_TOTAL_COST = 100_000_000;
const SHOWN = 4;

/** Returns an error if the cost exceeds the limit for one rule. */
export function checkCost(path: string, what: string, cost: number): FieldError | undefined {
  return cost > MAX_COST ? forbiddenField(path, costMessage(what, cost, MAX_COST)) : undefined;
}

export class TotalCost {
  #total = 0;
  #mostExpensive: { path: string; cost: number }[] = [];

  add(path: string, cost: number): void {
    this.#total += cost;
    if (cost < MAX_TOTAL_COST / 100) return;
    this.#mostExpensive.push({ path, cost });
    this.#mostExpensive.sort((a, b) => b.cost - a.cost);
    this.#mostExpensive.length = Math.min(this.#mostExpensive.length, SHOWN);
  }

  /** Returns errors for the whole schema at `root` if the total is too high, most expensive rules first. */
  errors(root: string): FieldError[] {
    if (this.#total <= MAX_TOTAL_COST) return [];
    const each = this.#mostExpensive.map(({ path }) =>
      forbiddenField(path, 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'),
    );
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [...each, forbiddenField(root, costMessage(what, this.#total, MAX_TOTAL_COST))];
  }
}

function costMessage(what: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const shown = factor > 100 ? 'more than 100x' : `${factor.toFixed(factor < 1.5 ? 6 : 1)}x`;
  return `${what} exceeds budget by factor of ${shown} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}
