/**
 * The JSONPath dialect of printer columns and selectable fields, with the semantics of client-go: compiled once, then
 * evaluated for many objects. A missing field yields no value, never an error. As in client-go, `['a.b']` is the path
 * `.a.b`; a dot in a key is escaped, as in `.metadata.labels.app\.kubernetes\.io/name`.
 *
 * jsonpath-parser.ts parses the syntax.
 */
import {
  type Comparison,
  type JsonPathFilter,
  type Operand,
  parseJsonPath,
  type JsonPathStep,
} from '#kube/selectors/jsonpath-parser.ts';
import { isRecord } from '#kube/meta.ts';

/** Limit of values visited in one evaluation, because recursive descents multiply. Beyond it the result is empty. */
const MAX_VISITS = 100_000;

/** Compiles a path. Throws a JsonPathError if it is invalid. */
export function compileJsonPath(path: string): (object: unknown) => unknown[] {
  const steps = parseJsonPath(path);
  if (steps.every((step) => step.kind === 'field')) return fieldReader(steps.map((step) => step.name));
  return (object) => {
    try {
      return evaluate(steps, [object], { total: 0 });
    } catch (error) {
      if (error instanceof VisitLimitError) return [];
      throw error;
    }
  };
}

/** The fast path for chains of fields, which nearly all columns are. */
function fieldReader(names: readonly string[]): (object: unknown) => unknown[] {
  return (object) => {
    let value = object;
    for (const name of names) {
      if (!isRecord(value) || !Object.hasOwn(value, name)) return [];
      value = value[name];
    }
    return [value];
  };
}

class VisitLimitError extends Error {}

interface VisitCount {
  total: number;
}

function countVisit(count: VisitCount): void {
  if (++count.total > MAX_VISITS) throw new VisitLimitError();
}

function evaluate(steps: readonly JsonPathStep[], input: unknown[], count: VisitCount): unknown[] {
  let values = input;
  for (const step of steps) {
    const next: unknown[] = [];
    for (const value of values) {
      countVisit(count);
      evaluateStep(step, value, next, count);
    }
    values = next;
  }
  return values;
}

function evaluateStep(step: JsonPathStep, value: unknown, out: unknown[], count: VisitCount): void {
  switch (step.kind) {
    case 'field':
      if (isRecord(value) && Object.hasOwn(value, step.name)) out.push(value[step.name]);
      return;
    case 'wildcard':
      for (const child of children(value)) out.push(child);
      return;
    case 'slice':
      if (Array.isArray(value)) slice(step, value, out);
      return;
    case 'filter':
      if (!Array.isArray(value)) return;
      for (const item of value) {
        countVisit(count);
        if (matchesFilter(step, item, count)) out.push(item);
      }
      return;
    case 'recursive':
      descend(value, out, count);
      return;
    case 'union':
      for (const branch of step.branches) for (const found of evaluate(branch, [value], count)) out.push(found);
      return;
  }
}

function children(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}

/**
 * Collects every non-empty object and array, starting with the value itself. Iterative, so that depth needs no stack.
 */
function descend(value: unknown, out: unknown[], count: VisitCount): void {
  const pending = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    countVisit(count);
    const nested = children(next);
    if (nested.length === 0) continue;
    out.push(next);
    for (let i = nested.length - 1; i >= 0; i--) pending.push(nested[i]);
  }
}

function slice(
  { from, to, step }: Extract<JsonPathStep, { kind: 'slice' }>,
  array: readonly unknown[],
  out: unknown[],
): void {
  const start = from < 0 ? from + array.length : from;
  const end = to === undefined ? array.length : to < 0 ? to + array.length : to;
  if (start < 0 || end > array.length) return;
  for (let i = start; i < end; i += step) out.push(array[i]);
}

function matchesFilter({ left, comparison, right }: JsonPathFilter, item: unknown, count: VisitCount): boolean {
  const lefts = valuesOf(left, item, count);
  if (comparison === 'exists') return lefts.length > 0;
  const rights = valuesOf(right, item, count);
  return lefts.length === 1 && rights.length === 1 && compare(lefts[0], comparison, rights[0]);
}

function valuesOf(operand: Operand, item: unknown, count: VisitCount): unknown[] {
  return 'literal' in operand ? [operand.literal] : evaluate(operand.path, [item], count);
}

/** Compares values of the same type. Values of different types match no comparison, not even `!=`. */
function compare(a: unknown, comparison: Comparison, b: unknown): boolean {
  if (typeof a !== typeof b || typeof a === 'object') return false;
  if (comparison === '==') return a === b;
  if (comparison === '!=') return a !== b;
  if (typeof a === 'boolean') return false;
  const left = a as string | number;
  const right = b as string | number;
  switch (comparison) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
  }
}
