/** Returns the message of a failed rule: its messageExpression, else its message, else the rule itself. */
import type { Program } from '#cel/compile.ts';
import { CelFault } from '#cel/value.ts';
import { SPENT, type EvaluationResult } from '#cel/limits/cost-budget.ts';
import type { CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import { duplicateValue, type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { ValidationRule } from '#kube/schema.ts';

const MAX_MESSAGE_BYTES = 5 * 1024;

export function ruleText({ rule, message }: ValidationRule): string {
  return (message || rule).trim();
}

/** Reports whether a single expression exceeded its cost limit. */
export function isCostLimitExceeded({ message }: CelFault): boolean {
  return message.startsWith('operation cancelled: actual cost limit exceeded');
}

interface RuleMessage {
  readonly text: string;
  /** True if the budget is spent, so that no more rules can be evaluated. */
  readonly spent: boolean;
}

export function buildRuleMessage(
  { rule, message }: CompiledRule,
  run: (message: Program) => EvaluationResult,
): RuleMessage {
  const fallback = { text: rule.message ? rule.message.trim() : `failed rule: ${ruleText(rule)}`, spent: false };
  if (message === undefined) return fallback;
  const result = run(message);
  if (result === SPENT) return { text: MESSAGE_OUT_OF_BUDGET, spent: true };
  if (result instanceof CelFault && isCostLimitExceeded(result)) {
    const source = JSON.stringify(message.source);
    const text = `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${source}`;
    return { text, spent: true };
  }
  const text = typeof result === 'string' ? result.trim() : '';
  const usable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES;
  return usable ? { text, spent: false } : fallback;
}

const MESSAGE_OUT_OF_BUDGET =
  'messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run';

/** Shows only the type of the value, not the value itself. */
export function ruleError({ reason }: ValidationRule, field: string, type: string, text: string): FieldError {
  switch (reason) {
    case 'FieldValueForbidden':
      return forbiddenField(field, text);
    case 'FieldValueRequired':
      return requiredValue(field, text);
    case 'FieldValueDuplicate':
      return duplicateValue(field, type);
    default:
      return invalidValue(field, type, text);
  }
}
