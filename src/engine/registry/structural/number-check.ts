/** Checks the range, step and size of numbers. */
import { isInteger } from '#engine/registry/structural/json-value.ts';
import type { Check } from '#engine/registry/structural/report.ts';
import type { Schema } from '#kube/schema.ts';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

export function numberCheck(schema: Schema): Check<number> | undefined {
  const checks = [sizeCheck(schema), stepCheck(schema), minimumCheck(schema), maximumCheck(schema)];
  const present = checks.filter((check) => check !== undefined);
  if (present.length < 2) return present[0];
  return (value, report) => {
    for (const check of present) check(value, report);
  };
}

/** The type already covers int64: a larger number is not an integer. */
function sizeCheck({ type, format }: Schema): Check<number> | undefined {
  if (type === 'integer' && format === 'int32') {
    return (value, report) => {
      if (!isInteger(value) || (value >= INT32_MIN && value <= INT32_MAX)) return;
      report.general(`Checked value must be of type integer with format int32 in ${report.path()}`);
    };
  }
  if (type === 'number' && format === 'float') {
    return (value, report) => {
      if (Number.isFinite(Math.fround(value))) return;
      report.general(`Checked value must be of type number with format float in ${report.path()}`);
    };
  }
  return undefined;
}

function stepCheck({ multipleOf }: Schema): Check<number> | undefined {
  if (multipleOf === undefined) return undefined;
  return (value, report) => {
    // A step of 0 or less matches only 0; the message is the same.
    if (multipleOf > 0 ? !isWhole(value / multipleOf) : value !== 0) {
      report.invalid(value, `should be a multiple of ${multipleOf}`);
    }
  };
}

/** Tolerates rounding: 0.3 is a multiple of 0.1, although 0.3 / 0.1 is not exactly 3. */
function isWhole(quotient: number): boolean {
  const nearest = Math.round(quotient);
  return quotient === nearest || Math.abs(quotient - nearest) < Math.abs(quotient) * 1e-9;
}

function minimumCheck({ minimum, exclusiveMinimum = false }: Schema): Check<number> | undefined {
  if (minimum === undefined) return undefined;
  const message = `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`;
  return (value, report) => {
    if (exclusiveMinimum ? value <= minimum : value < minimum) report.invalid(value, message);
  };
}

function maximumCheck({ maximum, exclusiveMaximum = false }: Schema): Check<number> | undefined {
  if (maximum === undefined) return undefined;
  const message = `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`;
  return (value, report) => {
    if (exclusiveMaximum ? value >= maximum : value > maximum) report.invalid(value, message);
  };
}
