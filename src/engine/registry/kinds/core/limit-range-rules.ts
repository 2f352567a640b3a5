/** The rules of LimitRanges: resource names, and values that contradict each other. Pure. */
import {
  checkAmount,
  checkContainerResource,
  compareAmounts,
  isOvercommitAllowed,
  quantityText,
} from '#engine/registry/kinds/shared/quantities.ts';
import { duplicateValue, type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import { qualifiedNameErrors } from '#kube/names.ts';
import { parseQuantity, quantityToNumber } from '#kube/quantity.ts';

type Amounts = Readonly<Record<string, string | number>>;

interface Item {
  readonly type: string;
  readonly max?: Amounts;
  readonly min?: Amounts;
  readonly default?: Amounts;
  readonly defaultRequest?: Amounts;
  readonly maxLimitRequestRatio?: Amounts;
}

const TYPES = new Set(['Container', 'Pod', 'PersistentVolumeClaim']);
export const LIMIT_LISTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;

export function limitRangeErrors(items: readonly Item[]): FieldError[] {
  const seen = new Set<string>();
  return items.flatMap((item, i) => {
    const field = `spec.limits[${i}]`;
    const errors = typeErrors(`${field}.type`, item.type);
    if (seen.has(item.type)) errors.push(duplicateValue(`${field}.type`, item.type));
    seen.add(item.type);
    return [...errors, ...listErrors(field, item), ...storageErrors(field, item), ...orderErrors(field, item)];
  });
}

function typeErrors(field: string, type: string): FieldError[] {
  const texts = qualifiedNameErrors(type);
  if (texts.length > 0) return texts.map((text) => invalidValue(field, type, text));
  if (type.includes('/') || TYPES.has(type)) return [];
  return [invalidValue(field, type, 'must be a standard limit type or fully qualified')];
}

function listErrors(field: string, item: Item): FieldError[] {
  return LIMIT_LISTS.flatMap((list) => {
    const amounts = Object.entries(item[list] ?? {});
    if (item.type === 'Pod' && (list === 'default' || list === 'defaultRequest')) {
      if (amounts.length === 0) return [];
      return [forbiddenField(`${field}.${list}`, "may not be specified when `type` is 'Pod'")];
    }
    return amounts.flatMap(([name, amount]) => {
      const path = `${field}.${list}[${name}]`;
      return [...nameErrors(path, item.type, name), ...checkAmount(path, amount)];
    });
  });
}

function nameErrors(field: string, type: string, name: string): FieldError[] {
  if (type === 'Pod' || type === 'Container') return checkContainerResource(field, name);
  return qualifiedNameErrors(name).map((text) => invalidValue(field, name, text));
}

function storageErrors(field: string, { type, min = {}, max = {} }: Item): FieldError[] {
  if (type !== 'PersistentVolumeClaim' || 'storage' in min || 'storage' in max) return [];
  const why = 'either minimum or maximum storage value is required, but neither was provided';
  return [requiredValue(`${field}.limits`, why)];
}

function orderErrors(field: string, item: Item): FieldError[] {
  const names = new Set(LIMIT_LISTS.flatMap((list) => Object.keys(item[list] ?? {})));
  return [...names].sort().flatMap((name) => orderErrorsOf(field, name, item));
}

/** Reports each pair of values of one resource that is in the wrong order. */
function orderErrorsOf(field: string, name: string, item: Item): FieldError[] {
  const min = item.min?.[name];
  const max = item.max?.[name];
  const limit = item.type === 'Pod' ? undefined : item.default?.[name];
  const request = item.type === 'Pod' ? undefined : item.defaultRequest?.[name];
  const ratio = item.maxLimitRequestRatio?.[name];
  const at = (list: string) => `${field}.${list}[${name}]`;
  const errors: FieldError[] = [];
  const inOrder = (list: string, value: Amount, low: Named, high: Named) => {
    const [[lowName, a], [highName, b]] = [low, high];
    if (a === undefined || b === undefined || compareAmounts(a, b) <= 0) return;
    const why = `${lowName} value ${quantityText(a)} is greater than ${highName} value ${quantityText(b)}`;
    errors.push(invalidValue(at(list), quantityText(value ?? a), why));
  };
  inOrder('min', min, ['min', min], ['max', max]);
  inOrder('defaultRequest', request, ['min', min], ['default request', request]);
  inOrder('defaultRequest', request, ['default request', request], ['max', max]);
  inOrder('defaultRequest', request, ['default request', request], ['default limit', limit]);
  inOrder('default', min, ['min', min], ['default', limit]);
  inOrder('default', max, ['default', limit], ['max', max]);
  if (ratio !== undefined) errors.push(...ratioErrors(at('maxLimitRequestRatio'), ratio, min, max));
  if (!isOvercommitAllowed(name) && limit !== undefined && request !== undefined && compareAmounts(limit, request)) {
    const why = `default value ${quantityText(limit)} must equal to defaultRequest value ${quantityText(request)} in ${name}`;
    errors.push(invalidValue(at('defaultRequest'), quantityText(request), why));
  }
  return errors;
}

type Amount = string | number | undefined;
type Named = readonly [string, Amount];

function ratioErrors(field: string, ratio: string | number, min: Amount, max: Amount): FieldError[] {
  const text = quantityText(ratio);
  if (compareAmounts(ratio, 1) < 0) return [invalidValue(field, text, `ratio ${text} is less than 1`)];
  if (min === undefined || max === undefined) return [];
  const number = (amount: string | number) => quantityToNumber(parseQuantity(String(amount)));
  const widest = number(max) / number(min);
  if (number(ratio) <= widest) return [];
  return [invalidValue(field, text, `ratio ${text} is greater than max/min = ${widest.toFixed(6)}`)];
}
