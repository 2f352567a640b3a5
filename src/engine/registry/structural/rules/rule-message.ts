/** How a rule that does not hold is told: its messageExpression, else its message, else the rule itself. */
import type { Program } from '#cel/compile.ts';
import { CelFault } from '#cel/value.ts';
import { SPENT, type Evaluated } from '#engine/admission/expressions/purse.ts';
import type { CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import { duplicateValue, type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { ValidationRule } from '#kube/schema.ts';

const MAX_MESSAGE_BYTES = 5 * 1024;

export function ruleText({ rule, message }: ValidationRule): string {
  return (message || rule).trim();
}

/** A single expression was too dear. */
export function limitFault({ message }: CelFault): boolean {
  return message.startsWith('operation cancelled: actual cost limit exceeded');
}

interface Told {
  readonly text: string;
  /** It says only that no units are left for it, and for whatever comes after. */
  readonly spent: boolean;
}

export function messageOf({ rule, message }: CompiledRule, run: (message: Program) => Evaluated): Told {
  const usual = { text: rule.message ? rule.message.trim() : `failed rule: ${ruleText(rule)}`, spent: false };
  if (message === undefined) return usual;
  const said = run(message);
  if (said === SPENT) return { text: MESSAGE_OUT_OF_BUDGET, spent: true };
  if (said instanceof CelFault && limitFault(said)) {
    const source = JSON.stringify(message.source);
    const text = `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${source}`;
    return { text, spent: true };
  }
  const text = typeof said === 'string' ? said.trim() : '';
  const usable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES;
  return usable ? { text, spent: false } : usual;
}

const MESSAGE_OUT_OF_BUDGET =
  'messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run';

/** The value is not shown, only its type. */
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
