/**
 * Kubernetes' `quantity()` library. Values are exact (#kube/quantity.ts). A quantity also keeps Go's representation,
 * because `isInteger` depends on it: `1000m` is not an integer there.
 */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { QuantityAmount } from '#cel/kubernetes/quantity-amount.ts';
import { addAmounts, amountAsInteger, amountOf } from '#cel/kubernetes/quantity-amount.ts';
import type { Library } from '#cel/library.ts';
import { BOOL, DOUBLE, INT, STRING, opaque } from '#cel/type.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';
import { QuantityError, parseQuantity } from '#kube/quantity.ts';

const QUANTITY = opaque('kubernetes.Quantity');

const NANOS = 10n ** 9n;
/** Units for parsing a quantity, in addition to its length. */
const PARSE_COST = 40;
/** Additional units for a quantity that can have hundreds of digits. */
const LONG_PARSE_COST = 60;
const MAX_SHORT_SCALE = 18;
/** Longer texts are rejected without parsing. */
const MAX_TEXT = 256;
/** Units for a sum or difference. The numbers can have hundreds of digits. */
const ADD_COST = 10;
/** Units for the conversion to double, which formats text and is slow for long numbers. */
const FLOAT_COST = 20;
const LONG_FLOAT_COST = 250;

export class CelQuantity extends CelOpaque {
  override readonly type = QUANTITY;
  readonly nanos: bigint;
  /** Undefined if Go's 64 bits with a decimal exponent cannot represent it. */
  readonly amount: QuantityAmount | undefined;

  constructor(nanos: bigint, amount: QuantityAmount | undefined) {
    super();
    this.nanos = nanos;
    this.amount = amount;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelQuantity && other.nanos === this.nanos;
  }
}

export const quantityLibrary: Library = {
  functions: {
    add: [
      method<[CelQuantity, CelQuantity]>('quantity_add', [QUANTITY, QUANTITY], QUANTITY, (budget, a, b) =>
        add(budget, a, b, 1n),
      ),
      method<[CelQuantity, bigint]>('quantity_add_int', [QUANTITY, INT], QUANTITY, (budget, a, b) =>
        add(budget, a, fromInteger(b), 1n),
      ),
    ],
    asApproximateFloat: [
      method<[CelQuantity]>('quantity_get_float', [QUANTITY], DOUBLE, (budget, q) => {
        budget.charge(q.amount === undefined ? LONG_FLOAT_COST : FLOAT_COST);
        return toDouble(q);
      }),
    ],
    asInteger: [
      method<[CelQuantity]>('quantity_get_int', [QUANTITY], INT, (_budget, { amount }) => {
        return amountAsInteger(amount) ?? new CelFault('cannot convert value to integer');
      }),
    ],
    compareTo: [
      method<[CelQuantity, CelQuantity]>('quantity_compare_to', [QUANTITY, QUANTITY], INT, (_budget, a, b) =>
        signOf(a.nanos - b.nanos),
      ),
    ],
    isGreaterThan: [
      method<[CelQuantity, CelQuantity]>(
        'quantity_is_greater_than',
        [QUANTITY, QUANTITY],
        BOOL,
        (_budget, a, b) => a.nanos > b.nanos,
      ),
    ],
    isInteger: [
      method<[CelQuantity]>('quantity_is_integer', [QUANTITY], BOOL, (_budget, { amount }) => {
        return amountAsInteger(amount) !== undefined;
      }),
    ],
    isLessThan: [
      method<[CelQuantity, CelQuantity]>(
        'quantity_is_less_than',
        [QUANTITY, QUANTITY],
        BOOL,
        (_budget, a, b) => a.nanos < b.nanos,
      ),
    ],
    isQuantity: [
      func<[string]>('is_quantity_string', [STRING], BOOL, (budget, text) => {
        return readQuantity(budget, text) instanceof CelQuantity;
      }),
    ],
    quantity: [func<[string]>('string_to_quantity', [STRING], QUANTITY, readQuantity)],
    // A function, unlike all others, although Kubernetes' documentation shows it as a method.
    sign: [func<[CelQuantity]>('quantity_sign', [QUANTITY], INT, (_budget, q) => signOf(q.nanos))],
    sub: [
      method<[CelQuantity, CelQuantity]>('quantity_sub', [QUANTITY, QUANTITY], QUANTITY, (budget, a, b) =>
        add(budget, a, b, -1n),
      ),
      method<[CelQuantity, bigint]>('quantity_sub_int', [QUANTITY, INT], QUANTITY, (budget, a, b) =>
        add(budget, a, fromInteger(b), -1n),
      ),
    ],
  },
};

function readQuantity(budget: Budget, text: string): CelQuantity | CelFault {
  // The time grows with the square of the number of digits.
  budget.charge(PARSE_COST + bytesCost(5 * Math.min(text.length, MAX_TEXT)));
  try {
    const { nanos } = parseQuantity(text);
    const amount = amountOf(text);
    const isLong = amount === undefined || amount.scale > MAX_SHORT_SCALE;
    if (isLong) budget.charge(LONG_PARSE_COST);
    return new CelQuantity(nanos, amount);
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    budget.charge(THROW_COST);
    return new CelFault(error.message);
  }
}

function fromInteger(value: bigint): CelQuantity {
  return new CelQuantity(value * NANOS, { value, scale: 0 });
}

function add(budget: Budget, a: CelQuantity, b: CelQuantity, sign: 1n | -1n): CelQuantity {
  budget.charge(ADD_COST);
  return new CelQuantity(a.nanos + sign * b.nanos, addAmounts(a.amount, b.amount, sign));
}

function signOf(value: bigint): bigint {
  return value < 0n ? -1n : value > 0n ? 1n : 0n;
}

/** Rounds twice like Go, so that the last digit is the same. */
function toDouble({ nanos, amount }: CelQuantity): number {
  if (amount === undefined) return Number(`${nanos}e-9`);
  return Number(amount.value) * Number(`1e${amount.scale}`);
}
