/** Quantities in objects: canonical form, comparison and validation. */
import { NOT_NEGATIVE } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { qualifiedNameErrors } from '#kube/names.ts';
import { formatQuantity, parseQuantity, type Quantity, QuantityError } from '#kube/quantity.ts';

type Amount = string | number;
type Amounts = Readonly<Record<string, Amount>>;

const NOT_POSITIVE = 'must be greater than zero';

/** Returns the quantity, or Kubernetes' message if it is invalid. */
function parse(amount: Amount): Quantity | string {
  try {
    return parseQuantity(String(amount));
  } catch (error) {
    if (error instanceof QuantityError) return error.message;
    throw error;
  }
}

/** Returns the amount in billionths, or zero if it is invalid (checkAmount reports that). */
function nanosOf(amount: Amount): bigint {
  const parsed = parse(amount);
  return typeof parsed === 'string' ? 0n : parsed.nanos;
}

export function compareAmounts(a: Amount, b: Amount): number {
  const difference = nanosOf(a) - nanosOf(b);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function isPositiveQuantity(amount: Amount): boolean {
  return nanosOf(amount) > 0n;
}

/** Returns the canonical form, or the amount itself if it is invalid. */
export function quantityText(amount: Amount): string {
  const parsed = parse(amount);
  return typeof parsed === 'string' ? String(amount) : formatQuantity(parsed);
}

/** Canonicalizes every amount of a list, in place. */
export function canonicalAmounts(amounts: unknown): void {
  if (!isRecord(amounts)) return;
  for (const [name, amount] of Object.entries(amounts)) {
    if (typeof amount === 'string' || typeof amount === 'number') amounts[name] = quantityText(amount);
  }
}

/** Canonicalizes `{requests, limits}`, in place. */
export function canonicalResources(resources: unknown): void {
  if (!isRecord(resources)) return;
  canonicalAmounts(resources['requests']);
  canonicalAmounts(resources['limits']);
}

export function checkAmount(field: string, amount: Amount): FieldError[] {
  const parsed = parse(amount);
  if (typeof parsed === 'string') return [invalidValue(field, amount, parsed)];
  return parsed.nanos < 0n ? [invalidValue(field, formatQuantity(parsed), NOT_NEGATIVE)] : [];
}

export function checkPositiveAmount(field: string, amount: Amount): FieldError[] {
  const parsed = parse(amount);
  if (typeof parsed === 'string') return [invalidValue(field, amount, parsed)];
  return parsed.nanos > 0n ? [] : [invalidValue(field, formatQuantity(parsed), NOT_POSITIVE)];
}

const CONTAINER_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage']);

/** Checks a resource name: `cpu`, `hugepages-2Mi`, `example.com/gpu`. */
export function checkContainerResource(field: string, name: string): FieldError[] {
  const texts = qualifiedNameErrors(name);
  if (texts.length > 0) return texts.map((text) => invalidValue(field, name, text));
  if (name.includes('/') || CONTAINER_RESOURCES.has(name) || name.startsWith('hugepages-')) return [];
  return [
    invalidValue(field, name, 'must be a standard resource type or fully qualified'),
    invalidValue(field, name, 'must be a standard resource for containers'),
  ];
}

/** Devices and huge pages cannot be overcommitted: the request must equal the limit. */
export function isOvercommitAllowed(name: string): boolean {
  return !name.includes('/') && !name.startsWith('hugepages-');
}

interface Resources {
  readonly requests?: Amounts | undefined;
  readonly limits?: Amounts | undefined;
}

export function checkResources(field: string, resources: Resources | undefined): FieldError[] {
  const { requests = {}, limits = {} } = resources ?? {};
  const errors: FieldError[] = [];
  for (const [name, amount] of Object.entries(limits)) errors.push(...checkOne(`${field}.limits`, name, amount));
  for (const [name, amount] of Object.entries(requests)) {
    errors.push(
      ...checkOne(`${field}.requests`, name, amount),
      ...checkAgainstLimit(field, name, amount, limits[name]),
    );
  }
  return errors;
}

function checkOne(list: string, name: string, amount: Amount): FieldError[] {
  const field = `${list}[${name}]`;
  return [...checkContainerResource(field, name), ...checkAmount(field, amount)];
}

function checkAgainstLimit(field: string, name: string, request: Amount, limit: Amount | undefined): FieldError[] {
  const shared = isOvercommitAllowed(name);
  if (limit === undefined) {
    if (shared) return [];
    return [requiredValue(`${field}.limits`, 'Limit must be set for non overcommitable resources')];
  }
  const order = compareAmounts(request, limit);
  const text = quantityText(request);
  if (order !== 0 && !shared) {
    return [invalidValue(`${field}.requests`, text, `must be equal to ${name} limit of ${quantityText(limit)}`)];
  }
  if (order <= 0) return [];
  const detail = `must be less than or equal to ${name} limit of ${quantityText(limit)}`;
  return [invalidValue(`${field}.requests`, text, detail)];
}
