/**
 * Plans folds as closures: over the elements of a list, the keys of a map, or with two variables over both index and
 * element or key and value.
 */
import type { FoldExpr } from '#cel/ast.ts';
import { CALL_COST, LOOKUP_COST, keysCost } from '#cel/limits/budget.ts';
import { SlotScope } from '#cel/evaluate/plan/step.ts';
import type { EvaluationFrame, StepResult, Planner, EvaluationStep } from '#cel/evaluate/plan/step.ts';
import { CelFault, CelList, CelMap } from '#cel/value.ts';

interface Fold {
  readonly range: EvaluationStep;
  readonly start: EvaluationStep;
  readonly condition: EvaluationStep;
  readonly step: EvaluationStep;
  readonly result: EvaluationStep;
  /** The slots of the variables. */
  readonly accumulator: number;
  readonly variable: number;
  /** -1 if there is no second variable. */
  readonly second: number;
}

export function planFold(expr: FoldExpr, planner: Planner, scope: SlotScope | undefined): EvaluationStep {
  const accumulatorScope = new SlotScope(expr.accumulator, scope);
  const first = new SlotScope(expr.variable, accumulatorScope);
  const inner = expr.second === undefined ? first : new SlotScope(expr.second, first);
  const fold: Fold = {
    range: planner.plan(expr.range, scope),
    start: planner.plan(expr.start, scope),
    condition: planner.plan(expr.condition, inner),
    step: planner.plan(expr.step, inner),
    result: planner.plan(expr.result, accumulatorScope),
    accumulator: accumulatorScope.slot,
    variable: first.slot,
    second: expr.second === undefined ? -1 : inner.slot,
  };
  return (frame) => runFold(fold, frame);
}

function runFold(fold: Fold, frame: EvaluationFrame): StepResult {
  frame.budget.charge(CALL_COST);
  const range = fold.range(frame);
  if (range instanceof CelFault) return range;
  // Evaluated before the slot is set, because an inner fold may use the same slot.
  const start = fold.start(frame);
  frame.slots[fold.accumulator] = start;
  if (range instanceof CelList) foldList(fold, range, frame);
  else if (range instanceof CelMap) foldMap(fold, range, frame);
  else return new CelFault('unsupported comprehension range type');
  return fold.result(frame);
}

function foldList(fold: Fold, list: CelList, frame: EvaluationFrame): void {
  const { slots } = frame;
  const { size } = list;
  for (let at = 0; at < size; at += 1) {
    if (fold.second === -1) {
      slots[fold.variable] = list.at(at);
    } else {
      slots[fold.variable] = BigInt(at);
      slots[fold.second] = list.at(at);
    }
    if (!runIteration(fold, frame)) return;
  }
}

function foldMap(fold: Fold, map: CelMap, frame: EvaluationFrame): void {
  const { slots } = frame;
  frame.budget.charge(keysCost(map.size));
  for (const key of map.keys()) {
    slots[fold.variable] = key;
    if (fold.second !== -1) {
      frame.budget.charge(LOOKUP_COST);
      slots[fold.second] = map.get(key) ?? null;
    }
    if (!runIteration(fold, frame)) return;
  }
}

/**
 * Returns false if the condition ended the fold. As in cel-go, a condition that is not a bool does not end it: the
 * accumulator holds the fault.
 */
function runIteration(fold: Fold, frame: EvaluationFrame): boolean {
  frame.budget.charge(1);
  if (fold.condition(frame) === false) return false;
  frame.slots[fold.accumulator] = fold.step(frame);
  return true;
}
