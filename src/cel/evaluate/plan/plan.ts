/**
 * Plans a tree as closures, once per program; each evaluation runs them. Each closure charges one unit for its own
 * node. Only CostLimitError is thrown: every other failure is a fault, which is a value.
 */
import type { Expr, IdentExpr, ListExpr, MapExpr, SelectExpr } from '#cel/ast.ts';
import { CostLimitError, LIST_COST, MAP_COST } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import type { Activation } from '#cel/environment.ts';
import type { Environment } from '#cel/environment.ts';
import { hasField, fieldAccessor, selectField } from '#cel/evaluate/access.ts';
import { ArrayList, EMPTY_LIST } from '#cel/evaluate/array-list.ts';
import { EntryMap } from '#cel/evaluate/entry-map.ts';
import { describeKey } from '#cel/evaluate/fault.ts';
import { planCall } from '#cel/evaluate/plan/plan-call.ts';
import { planFold } from '#cel/evaluate/plan/plan-fold.ts';
import { EvaluationFrame, SlotScope } from '#cel/evaluate/plan/step.ts';
import type { StepResult, Planner, EvaluationStep } from '#cel/evaluate/plan/step.ts';
import { qualifiedName, rootName } from '#cel/parse/qualified-name.ts';
import { CelFault, CelOptional } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

export function plan(tree: Expr, environment: Environment): (activation: Activation, budget: Budget) => StepResult {
  const planner: Planner = { environment, plan: (expr, scope) => planExpr(expr, planner, scope) };
  const step = planner.plan(tree, undefined);
  return (activation, budget) => {
    try {
      return step(new EvaluationFrame(activation, budget));
    } catch (error) {
      // Variables that refer to variables can nest deeper than the stack, although each expression is bounded.
      throw error instanceof RangeError ? new CostLimitError() : error;
    }
  };
}

function planExpr(expr: Expr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  switch (expr.kind) {
    case 'const': {
      const { value } = expr;
      return () => value;
    }
    case 'ident':
      return planIdent(expr, planner, scope);
    case 'select':
      return planSelect(expr, planner, scope);
    case 'call':
      return planCall(expr, planner, scope);
    case 'list':
      return planList(expr, planner, scope);
    case 'map':
      return planMap(expr, planner, scope);
    case 'message': {
      const fault = new CelFault(`unknown type: ${expr.name}`);
      return () => fault;
    }
    case 'fold':
      return planFold(expr, planner, scope);
  }
}

function planIdent({ name }: IdentExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  const slot = SlotScope.slotOf(name, scope);
  if (slot !== undefined) {
    return (frame) => {
      frame.budget.charge(1);
      return frame.slots[slot] as StepResult;
    };
  }
  return planGlobal(name.replace(/^\./, ''), planner.environment);
}

function planGlobal(name: string, environment: Environment): EvaluationStep {
  const type = environment.variables.has(name) ? undefined : environment.types.get(name);
  if (type !== undefined) return () => type;
  const fault = new CelFault(`no such attribute(s): ${name}`);
  return (frame) => {
    frame.budget.charge(1);
    const value = frame.activation(name);
    return value === undefined ? fault : value;
  };
}

function planSelect(expr: SelectExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  const name = qualifiedName(expr);
  // A declared name with dots is rare; most selections are fields.
  if (name !== undefined && SlotScope.slotOf(rootName(name), scope) === undefined) {
    const { variables, types } = planner.environment;
    if (variables.has(name) || types.has(name)) return planGlobal(name, planner.environment);
  }
  const operand = planner.plan(expr.operand, scope);
  const look = fieldAccessor<StepResult>(expr.test ? hasField : selectField, expr.field);
  return (frame) => {
    frame.budget.charge(1);
    const value = operand(frame);
    return value instanceof CelFault ? value : look(value);
  };
}

function planList(expr: ListExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  if (expr.elements.length === 0) return () => EMPTY_LIST;
  const constant = constantList(expr);
  if (constant !== undefined) return () => constant;
  const elements = expr.elements.map(({ value, optional }) => ({ step: planner.plan(value, scope), optional }));
  return (frame) => {
    frame.budget.charge(LIST_COST + elements.length);
    const items: CelValue[] = [];
    for (const { step, optional } of elements) {
      const value = step(frame);
      if (value instanceof CelFault) return value;
      if (!optional) {
        items.push(value);
      } else if (!(value instanceof CelOptional)) {
        return new CelFault(`cannot initialize optional list element from non-optional value ${describeKey(value)}`);
      } else if (value.value !== undefined) {
        items.push(value.value);
      }
    }
    return new ArrayList(items);
  };
}

/** Returns a list that is created once if all elements are constants: `x in ['a', 'b']`. */
function constantList({ elements }: ListExpr): ArrayList | undefined {
  const items: CelValue[] = [];
  for (const { value, optional } of elements) {
    if (value.kind !== 'const' || optional) return undefined;
    items.push(value.value);
  }
  return new ArrayList(items, true);
}

function planMap(expr: MapExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  const entries = expr.entries.map(({ key, value, optional }) => ({
    key: planner.plan(key, scope),
    value: planner.plan(value, scope),
    optional,
  }));
  return (frame) => {
    frame.budget.charge(MAP_COST + entries.length * 3);
    const known: [CelValue, CelValue][] = [];
    for (const entry of entries) {
      const key = entry.key(frame);
      if (key instanceof CelFault) return key;
      const value = entry.value(frame);
      if (value instanceof CelFault) return value;
      if (!entry.optional) {
        known.push([key, value]);
      } else if (!(value instanceof CelOptional)) {
        return new CelFault(
          `cannot initialize optional entry '${describeKey(key)}' from non-optional value ${describeKey(value)}`,
        );
      } else if (value.value !== undefined) {
        known.push([key, value.value]);
      }
    }
    return EntryMap.of(known);
  };
}
