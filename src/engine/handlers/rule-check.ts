/** The rules of a custom kind's schema (x-kubernetes-validations), asked last: they rely on the types being right. */
import { inSlices } from '#engine/admission/expressions/slices.ts';
import type { Call } from '#engine/handlers/call.ts';
import type { RuleValidator } from '#engine/registry/structural/rules/rule-tree.ts';
import type { FieldError, FieldErrorReason } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Past one of these, rules could not be sure of what they look at. */
const BLOCKING: ReadonlySet<FieldErrorReason> = new Set<FieldErrorReason>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

const NOT_ASKED: FieldError = {
  reason: 'FieldValueInvalid',
  field: '<nil>',
  message:
    'Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};

export interface RuleSubject {
  readonly object: KubeObject;
  /** undefined = it is new. */
  readonly old: KubeObject | undefined;
  /** What was found already. */
  readonly errors: readonly FieldError[];
}

/** All that is wrong: a promise only where the rules take long. Warns of what was wrong before. */
export function askRules(
  call: Call,
  rules: RuleValidator,
  { object, old, errors }: RuleSubject,
): readonly FieldError[] | Promise<readonly FieldError[]> {
  if (errors.some(({ reason }) => BLOCKING.has(reason))) return [...errors, NOT_ASKED];
  const verdict = inSlices(rules.run(object, old, { lenient: call.route.subresource !== 'status' }));
  const told = (found: Awaited<typeof verdict>) => {
    for (const warning of found.warnings) call.notes.warn(warning);
    return [...errors, ...found.errors];
  };
  return verdict instanceof Promise ? verdict.then(told) : told(verdict);
}
