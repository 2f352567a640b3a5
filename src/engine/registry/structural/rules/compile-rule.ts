/**
 * Compiles one rule of x-kubernetes-validations, and estimates its cost. Kubernetes' messages for rules that do not
 * compile.
 */
import type { Expr } from '#cel/ast.ts';
import type { CheckBudget } from '#cel/limits/check-budget.ts';
import { compile, type CompileFailure, type Program } from '#cel/compile.ts';
import { type Environment, withVariables } from '#cel/environment.ts';
import { estimateCost } from '#cel/estimate/estimate-cost.ts';
import type { SizeEstimate } from '#cel/estimate/schema-sizes.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { BOOL, type CelType, optionalOf, STRING } from '#cel/type.ts';
import { fieldAt, FieldPathError } from '#engine/registry/structural/rules/field-path.ts';
import type { Schema, ValidationRule } from '#kube/schema.ts';

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Undefined if the rule is empty or does not compile (`failure`). */
  readonly program: Program | undefined;
  readonly failure: string | undefined;
  readonly usesOldSelf: boolean;
  /** Estimated cost of one evaluation; 0 unless requested. */
  readonly cost: number;
  readonly message: Program | undefined;
  readonly messageFailure: string | undefined;
  readonly messageCost: number;
  /** Relative path for errors; '' = none. */
  readonly fieldPath: string;
}

/** The context in which the rules of a schema node are compiled. */
interface RuleScope {
  readonly schema: Schema;
  /** The type of `self`. */
  readonly self: CelType;
  /** Set if costs are to be estimated. */
  readonly sizes?: SizeEstimate;
  readonly checkBudget?: CheckBudget;
}

const OLD_SELF = 'oldSelf';

export function compileRule(rule: ValidationRule, scope: RuleScope): CompiledRule {
  const environment = environmentOf(rule, scope.self);
  const program = compiled(rule.rule ?? '', environment, BOOL, scope);
  const failed = program !== undefined && 'failure' in program;
  const message = failed ? undefined : compiled(rule.messageExpression ?? '', environment, STRING, scope);
  const text = message !== undefined && 'failure' in message ? undefined : message;
  return {
    rule,
    program: failed ? undefined : program,
    failure: failed ? failureText(program, '', 'cel expression must evaluate to a bool') : undefined,
    usesOldSelf: !failed && program !== undefined && refersTo(program.checked?.tree, OLD_SELF),
    cost: failed ? 0 : costOf(program, scope),
    message: text,
    messageFailure:
      message !== undefined && 'failure' in message
        ? failureText(message, 'messageExpression ', 'messageExpression must evaluate to a string')
        : undefined,
    messageCost: costOf(text, scope),
    fieldPath: fieldPathOf(rule, scope.schema),
  };
}

function environmentOf({ optionalOldSelf }: ValidationRule, self: CelType): Environment {
  const oldSelf = optionalOldSelf === true ? optionalOf(self) : self;
  return withVariables(kubernetesEnvironment, { self, [OLD_SELF]: oldSelf });
}

function compiled(source: string, environment: Environment, expect: CelType, { checkBudget }: RuleScope) {
  if (source.trim() === '') return undefined;
  return compile(source, environment, { expect: [expect], annotate: true, ...(checkBudget ? { checkBudget } : {}) });
}

function failureText({ about, failure }: CompileFailure, what: string, wrongResult: string): string {
  return about === 'source' ? `${what}compilation failed: ${failure}` : wrongResult;
}

function costOf(program: Program | undefined, { sizes }: RuleScope): number {
  return program?.checked === undefined || sizes === undefined ? 0 : estimateCost(program.checked, sizes);
}

function fieldPathOf({ fieldPath }: ValidationRule, schema: Schema): string {
  if (!fieldPath) return '';
  try {
    return fieldAt(fieldPath, schema).path;
  } catch (error) {
    if (error instanceof FieldPathError) return '';
    throw error;
  }
}

/** Reports whether an expression refers to a name, whatever it is bound to. */
function refersTo(expr: Expr | undefined, name: string): boolean {
  if (expr === undefined) return false;
  const inside = (inner: Expr | undefined) => refersTo(inner, name);
  switch (expr.kind) {
    case 'const':
      return false;
    case 'ident':
      return expr.name === name;
    case 'select':
      return inside(expr.operand);
    case 'call':
      return inside(expr.target) || expr.args.some(inside);
    case 'list':
      return expr.elements.some(({ value }) => inside(value));
    case 'map':
      return expr.entries.some(({ key, value }) => inside(key) || inside(value));
    case 'message':
      return expr.entries.some(({ value }) => inside(value));
    case 'fold':
      return [expr.range, expr.start, expr.condition, expr.step, expr.result].some(inside);
  }
}
