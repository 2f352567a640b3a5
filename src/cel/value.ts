/**
 * Values at run time:
 *
 *   null, bool, double, string   as in JavaScript            int        bigint within 64 bits
 *   uint                         CelUint                     bytes      Uint8Array
 *   list, map                    interfaces, so that JSON is read in place and only where an expression looks
 *   timestamp, duration          nanoseconds                 anything else: CelOpaque, which its library understands
 *
 * An operation that fails gives a CelFault, which is a value too: `||` and `&&` go on past it. Only a spent budget is
 * thrown (budget.ts): nothing may go on past that.
 */
import type { Budget } from '#cel/budget.ts';
import type { CelType, OpaqueType } from '#cel/type.ts';

export class CelUint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

export class CelTimestamp {
  /** Since 1970, UTC. */
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
  /** undefined = none. */
  readonly value: CelValue | undefined;
  constructor(value: CelValue | undefined) {
    this.value = value;
  }
}

/** A type as a value: `int`, `type(x)`. Two are equal when their names are. */
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
  /** Within 0 and size - 1. */
  abstract at(index: number): CelValue;
  /** undefined = elements belong to each other by their place. */
  get pairing(): Pairing | undefined {
    return undefined;
  }
}

/**
 * Lists that Kubernetes calls sets and maps have no order: their elements belong together by themselves, or by the values
 * of these keys.
 */
export interface Pairing {
  /** None = an element is its own key. */
  readonly keys: readonly string[];
}

export abstract class CelMap {
  abstract readonly size: number;
  /** undefined = no such key. A fault is the value of a key that could not be computed. */
  abstract get(key: CelValue): CelValue | CelFault | undefined;
  abstract has(key: CelValue): boolean;
  abstract keys(): Iterable<CelValue>;
}

export abstract class CelOpaque {
  abstract readonly type: OpaqueType;
  /** Charges for what may be long. */
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

/** What went wrong in an evaluation: `no such key: labels`, `divide by zero`, `no such overload`. */
export class CelFault {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}
