/**
 * Plans calls as closures. Operators of the language run directly. All other functions, and operators with operands
 * that they do not handle, select an overload by the types of the arguments at run time.
 */
import type { CallExpr, Expr } from '#cel/ast.ts';
import { CALL_COST, LIST_COST } from '#cel/limits/budget.ts';
import { contains, indexElement } from '#cel/evaluate/access.ts';
import { add, append, divide, modulo, multiply, subtract } from '#cel/evaluate/arithmetic.ts';
import type { BinaryOperator } from '#cel/evaluate/arithmetic.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { NO_SUCH_OVERLOAD } from '#cel/evaluate/fault.ts';
import { buildTypeMatcher } from '#cel/evaluate/plan/type-matcher.ts';
import type { TypeMatcher } from '#cel/evaluate/plan/type-matcher.ts';
import { compareValues } from '#cel/evaluate/compare-values.ts';
import { planLazy } from '#cel/evaluate/plan/plan-lazy.ts';
import { SlotScope } from '#cel/evaluate/plan/step.ts';
import type { EvaluationFrame, StepResult, Planner, EvaluationStep } from '#cel/evaluate/plan/step.ts';
import type { Overload } from '#cel/library.ts';
import { qualifiedName, rootName } from '#cel/parse/qualified-name.ts';
import { CelFault } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

function comparison(holds: (sign: number) => boolean): BinaryOperator {
  return (a, b, budget) => {
    const sign = compareValues(a, b, budget);
    if (typeof sign === 'number') return holds(sign);
    return sign === NO_SUCH_OVERLOAD ? undefined : sign;
  };
}

/** Returns undefined if the overloads must decide. */
function deferToOverloads(outcome: StepResult): StepResult | undefined {
  return outcome === NO_SUCH_OVERLOAD ? undefined : outcome;
}

const BINARY: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  ['_==_', (a, b, budget) => areEqual(a, b, budget)],
  ['_!=_', (a, b, budget) => !areEqual(a, b, budget)],
  ['_<_', comparison((sign) => sign < 0)],
  ['_<=_', comparison((sign) => sign <= 0)],
  ['_>_', comparison((sign) => sign > 0)],
  ['_>=_', comparison((sign) => sign >= 0)],
  ['_+_', add],
  ['_-_', subtract],
  ['_*_', multiply],
  ['_/_', divide],
  ['_%_', modulo],
  ['_[_]', (a, b, budget) => deferToOverloads(indexElement(a, b, budget))],
  ['@in', (a, b, budget) => deferToOverloads(contains(a, b, budget))],
]);

export function planCall(expr: CallExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  const lazy = planLazy(expr, planner, scope);
  if (lazy !== undefined) return lazy;
  const { name, member, args } = resolve(expr, planner, scope);
  // Comes first so that nothing is planned twice: nested maps would double the work at each level.
  const appendStep = name === '_+_' ? planAppend(args, planner, scope) : undefined;
  if (appendStep !== undefined) return appendStep;
  const steps = args.map((arg) => planner.plan(arg, scope));
  const overloads = (planner.environment.functions.get(name) ?? []).filter(
    (overload) => overload.member === member && overload.args.length === args.length,
  );
  const dispatch = planDispatch(overloads, args);
  const [first, second] = steps;
  const operator = BINARY.get(name);
  if (operator !== undefined && first !== undefined && second !== undefined && steps.length === 2) {
    return binaryStep(operator, first, second, dispatch);
  }
  if (steps.length === 1 && first !== undefined) return unaryStep(first, dispatch);
  return callStep(steps, dispatch);
}

/** Plans `list + [value]`, which map and filter evaluate in each iteration. */
function planAppend(
  [list, added]: readonly Expr[],
  planner: Planner,
  scope: SlotScope | undefined,
): EvaluationStep | undefined {
  const element = added?.kind === 'list' && added.elements.length === 1 ? added.elements[0] : undefined;
  if (list === undefined || element === undefined || element.optional) return undefined;
  const listStep = planner.plan(list, scope);
  const elementStep = planner.plan(element.value, scope);
  return (frame) => {
    const { budget } = frame;
    budget.charge(LIST_COST);
    const to = listStep(frame);
    if (to instanceof CelFault) return to;
    const value = elementStep(frame);
    if (value instanceof CelFault) return value;
    return append(to, value, budget) ?? NO_SUCH_OVERLOAD;
  };
}

interface Call {
  readonly name: string;
  readonly member: boolean;
  /** Starts with the receiver. */
  readonly args: readonly Expr[];
}

/** Distinguishes the function `optional.of(x)` from the method call `x.of(y)`. */
function resolve({ name, target, args }: CallExpr, { environment }: Planner, scope: SlotScope | undefined): Call {
  if (target === undefined) return { name: name.replace(/^\./, ''), member: false, args };
  const prefix = qualifiedName(target);
  if (prefix !== undefined && SlotScope.slotOf(rootName(prefix), scope) === undefined) {
    const qualified = `${prefix}.${name}`;
    const known = environment.functions.get(qualified)?.some((overload) => !overload.member) ?? false;
    if (known) return { name: qualified, member: false, args };
  }
  return { name, member: true, args: [target, ...args] };
}

type Dispatch = (args: readonly CelValue[], frame: EvaluationFrame) => StepResult;

function planDispatch(overloads: readonly Overload[], args: readonly Expr[]): Dispatch {
  const constants = args.map((arg) => (arg.kind === 'const' ? arg.value : undefined));
  const candidates = overloads.map((overload) => ({
    matchers: overload.args.map(buildTypeMatcher),
    call: overload.prepare?.(constants) ?? overload.call.bind(overload),
  }));
  return (values, { budget }) => {
    for (const { matchers, call } of candidates) {
      if (allMatch(matchers, values, budget)) return call(values, budget);
    }
    return NO_SUCH_OVERLOAD;
  };
}

function allMatch(
  matchers: readonly TypeMatcher[],
  values: readonly CelValue[],
  budget: EvaluationFrame['budget'],
): boolean {
  for (let at = 0; at < matchers.length; at += 1) {
    const matches = matchers[at];
    if (matches !== undefined && !matches(values[at] as CelValue, budget)) return false;
  }
  return true;
}

function binaryStep(
  operator: BinaryOperator,
  first: EvaluationStep,
  second: EvaluationStep,
  dispatch: Dispatch,
): EvaluationStep {
  return (frame) => {
    const { budget } = frame;
    budget.charge(1);
    const a = first(frame);
    if (a instanceof CelFault) return a;
    const b = second(frame);
    if (b instanceof CelFault) return b;
    const outcome = operator(a, b, budget);
    return outcome === undefined ? dispatch([a, b], frame) : outcome;
  };
}

function unaryStep(first: EvaluationStep, dispatch: Dispatch): EvaluationStep {
  return (frame) => {
    frame.budget.charge(CALL_COST);
    const value = first(frame);
    return value instanceof CelFault ? value : dispatch([value], frame);
  };
}

function callStep(steps: readonly EvaluationStep[], dispatch: Dispatch): EvaluationStep {
  return (frame) => {
    frame.budget.charge(CALL_COST);
    const values: CelValue[] = [];
    for (const step of steps) {
      const value = step(frame);
      if (value instanceof CelFault) return value;
      values.push(value);
    }
    return dispatch(values, frame);
  };
}
