/**
 * Kubernetes' `quantity()`. Values are exact (#kube/quantity.ts). Beside them stands the amount as Go holds it, since
 * `isInteger` asks that and not the value: `1000m` is no integer there.
 */
import type { Budget } from '#cel/budget.ts';
import { bytesCost } from '#cel/budget.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { QuantityAmount } from '#cel/kubernetes/quantity-amount.ts';
import { addAmounts, amountAsInteger, amountOf } from '#cel/kubernetes/quantity-amount.ts';
import type { Library } from '#cel/library.ts';
import { BOOL, DOUBLE, INT, STRING, opaque } from '#cel/type.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';
import { QuantityError, parseQuantity } from '#kube/quantity.ts';

export const QUANTITY = opaque('kubernetes.Quantity');

const NANOS = 10n ** 9n;
/** Units for reading one, beside its length. */
const PARSE_COST = 10;

export class CelQuantity extends CelOpaque {
  override readonly type = QUANTITY;
  readonly nanos: bigint;
  /** undefined = too long or too fine for Go's 64 bits with a decimal exponent. */
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
      method<[CelQuantity, CelQuantity]>('quantity_add', [QUANTITY, QUANTITY], QUANTITY, (_budget, a, b) =>
        add(a, b, 1n),
      ),
      method<[CelQuantity, bigint]>('quantity_add_int', [QUANTITY, INT], QUANTITY, (_budget, a, b) =>
        add(a, whole(b), 1n),
      ),
    ],
    asApproximateFloat: [method<[CelQuantity]>('quantity_get_float', [QUANTITY], DOUBLE, (_budget, q) => asDouble(q))],
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
    // Not a method, unlike all others, though Kubernetes' documentation shows it as one.
    sign: [func<[CelQuantity]>('quantity_sign', [QUANTITY], INT, (_budget, q) => signOf(q.nanos))],
    sub: [
      method<[CelQuantity, CelQuantity]>('quantity_sub', [QUANTITY, QUANTITY], QUANTITY, (_budget, a, b) =>
        add(a, b, -1n),
      ),
      method<[CelQuantity, bigint]>('quantity_sub_int', [QUANTITY, INT], QUANTITY, (_budget, a, b) =>
        add(a, whole(b), -1n),
      ),
    ],
  },
};

function readQuantity(budget: Budget, text: string): CelQuantity | CelFault {
  budget.charge(PARSE_COST + bytesCost(text.length));
  try {
    return new CelQuantity(parseQuantity(text).nanos, amountOf(text));
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    budget.charge(THROW_COST);
    return new CelFault(error.message);
  }
}

function whole(value: bigint): CelQuantity {
  return new CelQuantity(value * NANOS, { value, scale: 0 });
}

function add(a: CelQuantity, b: CelQuantity, sign: 1n | -1n): CelQuantity {
  return new CelQuantity(a.nanos + sign * b.nanos, addAmounts(a.amount, b.amount, sign));
}

function signOf(value: bigint): bigint {
  return value < 0n ? -1n : value > 0n ? 1n : 0n;
}

/** With Go's two roundings, so that the last digit is the same. */
function asDouble({ nanos, amount }: CelQuantity): number {
  if (amount === undefined) return Number(`${nanos}e-9`);
  return Number(amount.value) * Number(`1e${amount.scale}`);
}
