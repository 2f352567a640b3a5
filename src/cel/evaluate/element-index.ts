/**
 * Finds elements of an associative list (a Kubernetes list of type set or map) by their identity, independent of their
 * position.
 */
import { bytesCost, type Budget, CostLimitError } from '#cel/limits/budget.ts';
import {
  CelDuration,
  CelFault,
  CelList,
  CelMap,
  CelOptional,
  type CelValue,
  type ElementIdentity,
} from '#cel/value.ts';
import { CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';

/** Units for computing the key of an element and looking it up. */
const KEY_UNITS = 8;
const MAX_DEPTH = 500;

export class ElementIndex {
  readonly #identity: ElementIdentity;
  readonly #elements = new Map<string, CelValue>();

  constructor(list: CelList, identity: ElementIdentity, budget: Budget) {
    this.#identity = identity;
    for (let index = 0; index < list.size; index += 1) {
      const element = list.at(index);
      this.#elements.set(this.#keyOf(element, budget), element);
    }
  }

  /** Returns the element with the same identity, or undefined. */
  find(element: CelValue, budget: Budget): CelValue | undefined {
    return this.#elements.get(this.#keyOf(element, budget));
  }

  #keyOf(element: CelValue, budget: Budget): string {
    const { keys } = this.#identity;
    budget.charge(KEY_UNITS);
    const values = keys.length === 0 ? [element] : keys.map((key) => fieldOf(element, key) ?? null);
    const text = values.map((value) => canonicalText(value, budget, 0)).join(' ');
    budget.charge(bytesCost(text.length));
    return text;
  }
}

function fieldOf(element: CelValue, key: CelValue): CelValue | undefined {
  const value = element instanceof CelMap ? element.get(key) : undefined;
  return value instanceof CelFault ? undefined : value;
}

/** Returns the same text for equal values, independent of the order of fields. */
function canonicalText(value: CelValue, budget: Budget, depth: number): string {
  if (depth > MAX_DEPTH) throw new CostLimitError();
  budget.charge(1);
  const inner = (part: CelValue) => canonicalText(part, budget, depth + 1);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value === null || typeof value !== 'object') return String(value);
  if (value instanceof CelList) return `[${Array.from({ length: value.size }, (_, at) => inner(value.at(at))).join()}]`;
  if (value instanceof CelMap) {
    const entries = Array.from(value.keys(), (key) => `${inner(key)}:${inner(fieldOf(value, key) ?? null)}`);
    return `{${entries.sort().join()}}`;
  }
  if (value instanceof CelTimestamp || value instanceof CelDuration) return `t${value.nanos}`;
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString('base64')}`;
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof CelOptional) return value.value === undefined ? 'none' : `of ${inner(value.value)}`;
  return value instanceof CelTypeValue ? value.name : value.type.name;
}
