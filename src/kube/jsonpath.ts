/**
 * The JSONPath dialect of printer columns and selectable fields, as client-go evaluates it: compiled once, then run on
 * many objects. What is missing yields no value, never an error. As in client-go, `['a.b']` is the path `.a.b`; a dot
 * that belongs to a key is escaped, as in `.metadata.labels.app\.kubernetes\.io/name`.
 *
 * The syntax is jsonpath-parser.ts's.
 */
import { type Comparison, type Filter, type Operand, parseJsonPath, type Step } from '#kube/jsonpath-parser.ts';
import { isRecord } from '#kube/meta.ts';

/** Values looked at in one evaluation. Recursive descents multiply; beyond this there is no result. */
const MAX_VISITS = 100_000;

/** Throws an Error that says what is wrong with the path. */
export function compileJsonPath(path: string): (object: unknown) => unknown[] {
  const steps = parseJsonPath(path);
  if (steps.every((step) => step.kind === 'field')) return fieldReader(steps.map((step) => step.name));
  return (object) => {
    try {
      return walk(steps, [object], { visits: 0 });
    } catch (error) {
      if (error instanceof TooMuchWork) return [];
      throw error;
    }
  };
}

/** Nearly all columns are plain chains of fields. */
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

class TooMuchWork extends Error {}

interface Budget {
  visits: number;
}

function visit(budget: Budget): void {
  if (++budget.visits > MAX_VISITS) throw new TooMuchWork();
}

function walk(steps: readonly Step[], input: unknown[], budget: Budget): unknown[] {
  let values = input;
  for (const step of steps) {
    const next: unknown[] = [];
    for (const value of values) {
      visit(budget);
      takeStep(step, value, next, budget);
    }
    values = next;
  }
  return values;
}

function takeStep(step: Step, value: unknown, out: unknown[], budget: Budget): void {
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
        visit(budget);
        if (passes(step, item, budget)) out.push(item);
      }
      return;
    case 'recursive':
      descend(value, out, budget);
      return;
    case 'union':
      for (const branch of step.branches) for (const found of walk(branch, [value], budget)) out.push(found);
      return;
  }
}

function children(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}

/** Every object and array below, itself first, except empty ones. Iterative: depth costs no stack. */
function descend(value: unknown, out: unknown[], budget: Budget): void {
  const pending = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    visit(budget);
    const below = children(next);
    if (below.length === 0) continue;
    out.push(next);
    for (let i = below.length - 1; i >= 0; i--) pending.push(below[i]);
  }
}

function slice({ from, to, step }: Extract<Step, { kind: 'slice' }>, array: readonly unknown[], out: unknown[]): void {
  const start = from < 0 ? from + array.length : from;
  const end = to === undefined ? array.length : to < 0 ? to + array.length : to;
  if (start < 0 || end > array.length) return;
  for (let i = start; i < end; i += step) out.push(array[i]);
}

function passes({ left, comparison, right }: Filter, item: unknown, budget: Budget): boolean {
  const lefts = valuesOf(left, item, budget);
  if (comparison === 'exists') return lefts.length > 0;
  const rights = valuesOf(right, item, budget);
  return lefts.length === 1 && rights.length === 1 && compare(lefts[0], comparison, rights[0]);
}

function valuesOf(operand: Operand, item: unknown, budget: Budget): unknown[] {
  return 'literal' in operand ? [operand.literal] : walk(operand.path, [item], budget);
}

/** Values of different types are never equal nor in order, and neither do they differ: the filter does not apply. */
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
