/**
 * Values at run time:
 *
 *   null, bool, double, string   as in JavaScript            int        bigint within 64 bits
 *   uint                         CelUint                     bytes      Uint8Array
 *   list, map                    interfaces, so that JSON is read in place and on demand
 *   timestamp, duration          nanoseconds                 others     CelOpaque, interpreted by their library
 *
 * An operation that fails returns a CelFault, which is a value too: `||` and `&&` can ignore it. Only an exceeded
 * budget is thrown (budget.ts), because it must always end the evaluation.
 */
import type { Budget } from '#cel/limits/budget.ts';
import type { CelType, OpaqueType } from '#cel/type.ts';

export class CelUint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

export class CelTimestamp {
  /** Nanoseconds since 1970, UTC. */
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class CelDuration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class CelOptional {
  /** Undefined for none. */
  readonly value: CelValue | undefined;
  constructor(value: CelValue | undefined) {
    this.value = value;
  }
}

/** A type as a value: `int`, `type(x)`. Two types are equal if their names are. */
export class CelTypeValue {
  readonly name: string;
  readonly type: CelType;
  constructor(name: string, type: CelType) {
    this.name = name;
    this.type = type;
  }
}

export abstract class CelList {
  abstract readonly size: number;
  /** The index must be between 0 and size - 1. */
  abstract at(index: number): CelValue;
  /** Undefined if elements are identified by their position. */
  get identity(): ElementIdentity | undefined {
    return undefined;
  }
}

/**
 * The identity of elements in an associative list (a Kubernetes list of type set or map), whose order does not matter:
 * the values of these keys, or the element itself.
 */
export interface ElementIdentity {
  /** Empty if an element is its own key. */
  readonly keys: readonly string[];
}

export abstract class CelMap {
  abstract readonly size: number;
  /** Returns undefined if there is no such key, and a fault if its value cannot be computed. */
  abstract get(key: CelValue): CelValue | CelFault | undefined;
  abstract has(key: CelValue): boolean;
  abstract keys(): Iterable<CelValue>;
}

export abstract class CelOpaque {
  abstract readonly type: OpaqueType;
  /** Charges for values that can be long. */
  abstract equals(other: CelOpaque, budget: Budget): boolean;
}

export type CelValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | CelUint
  | CelTimestamp
  | CelDuration
  | CelOptional
  | CelTypeValue
  | CelList
  | CelMap
  | CelOpaque;

/** A failed operation: `no such key: labels`, `divide by zero`, `no such overload`. */
export class CelFault {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}
