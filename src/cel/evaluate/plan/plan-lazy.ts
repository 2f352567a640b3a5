/**
 * Plans the calls that do not evaluate all of their arguments: logical operators, conditionals, and access to optional
 * values.
 */
import type { CallExpr } from '#cel/ast.ts';
import { CALL_COST } from '#cel/limits/budget.ts';
import { fieldAccessor, optionalSelect } from '#cel/evaluate/access.ts';
import { NO_SUCH_OVERLOAD } from '#cel/evaluate/fault.ts';
import type { StepResult, Planner, SlotScope, EvaluationStep } from '#cel/evaluate/plan/step.ts';
import { CelFault, CelOptional } from '#cel/value.ts';

/** Returns undefined for other calls. */
export function planLazy(expr: CallExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep | undefined {
  const { name, target, args } = expr;
  const plan = (at: number): EvaluationStep | undefined => {
    const arg = args[at];
    return arg === undefined ? undefined : planner.plan(arg, scope);
  };
  if (target !== undefined) {
    const known = args.length === 1 && (name === 'or' || name === 'orValue') && planner.environment.functions.has(name);
    const other = known ? plan(0) : undefined;
    return other === undefined ? undefined : orStep(planner.plan(target, scope), other, name === 'orValue');
  }
  switch (name) {
    case '_&&_':
      return wrapSteps(plan(0), plan(1), logicalAndStep);
    case '_||_':
      return wrapSteps(plan(0), plan(1), logicalOrStep);
    case '!_':
      return wrapStep(plan(0), notStep);
    case '@not_strictly_false':
      return wrapStep(plan(0), notStrictlyFalseStep);
    case '_?_:_': {
      const condition = plan(0);
      return condition && wrapSteps(plan(1), plan(2), (yes, no) => conditionStep(condition, yes, no));
    }
    case '_?._': {
      const [, field] = args;
      const named = field?.kind === 'const' && typeof field.value === 'string' ? field.value : undefined;
      return named === undefined ? undefined : wrapStep(plan(0), (operand) => optionalSelectStep(operand, named));
    }
    default:
      return undefined;
  }
}

function wrapStep(
  step: EvaluationStep | undefined,
  of: (step: EvaluationStep) => EvaluationStep,
): EvaluationStep | undefined {
  return step && of(step);
}

function wrapSteps(
  a: EvaluationStep | undefined,
  b: EvaluationStep | undefined,
  of: (a: EvaluationStep, b: EvaluationStep) => EvaluationStep,
): EvaluationStep | undefined {
  return a && b && of(a, b);
}

/** Returns false if one operand is false, even if the other is a fault. */
function logicalAndStep(left: EvaluationStep, right: EvaluationStep): EvaluationStep {
  return (frame) => {
    frame.budget.charge(1);
    const a = left(frame);
    if (a === false) return false;
    const b = right(frame);
    if (b === false) return false;
    return a === true && b === true ? true : undecidedFault(a, b);
  };
}

function logicalOrStep(left: EvaluationStep, right: EvaluationStep): EvaluationStep {
  return (frame) => {
    frame.budget.charge(1);
    const a = left(frame);
    if (a === true) return true;
    const b = right(frame);
    if (b === true) return true;
    return a === false && b === false ? false : undecidedFault(a, b);
  };
}

function undecidedFault(a: StepResult, b: StepResult): CelFault {
  if (a instanceof CelFault) return a;
  return b instanceof CelFault ? b : NO_SUCH_OVERLOAD;
}

function notStep(operand: EvaluationStep): EvaluationStep {
  return (frame) => {
    frame.budget.charge(1);
    const value = operand(frame);
    if (typeof value === 'boolean') return !value;
    return value instanceof CelFault ? value : NO_SUCH_OVERLOAD;
  };
}

function notStrictlyFalseStep(operand: EvaluationStep): EvaluationStep {
  return (frame) => {
    frame.budget.charge(1);
    return operand(frame) !== false;
  };
}

function conditionStep(condition: EvaluationStep, yes: EvaluationStep, no: EvaluationStep): EvaluationStep {
  return (frame) => {
    frame.budget.charge(1);
    const holds = condition(frame);
    if (holds === true) return yes(frame);
    if (holds === false) return no(frame);
    return holds instanceof CelFault ? holds : NO_SUCH_OVERLOAD;
  };
}

function optionalSelectStep(operand: EvaluationStep, field: string): EvaluationStep {
  const look = fieldAccessor(optionalSelect, field);
  return (frame) => {
    frame.budget.charge(CALL_COST);
    const value = operand(frame);
    return value instanceof CelFault ? value : look(value);
  };
}

function orStep(target: EvaluationStep, other: EvaluationStep, unwrap: boolean): EvaluationStep {
  return (frame) => {
    frame.budget.charge(1);
    const optional = target(frame);
    if (optional instanceof CelFault) return optional;
    if (!(optional instanceof CelOptional)) return NO_SUCH_OVERLOAD;
    if (optional.value !== undefined) return unwrap ? optional.value : optional;
    const value = other(frame);
    return unwrap || value instanceof CelOptional || value instanceof CelFault ? value : NO_SUCH_OVERLOAD;
  };
}
