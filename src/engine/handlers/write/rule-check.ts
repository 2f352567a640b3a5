/**
 * Evaluates the rules of a custom kind's schema (x-kubernetes-validations). Runs last, because rules rely on valid
 * types.
 */
import { runInSlices } from '#cel/limits/slices.ts';
import type { Call } from '#engine/handlers/call.ts';
import type { RuleValidator } from '#engine/registry/structural/rules/rule-tree.ts';
import type { FieldError, FieldErrorReason } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Errors after which rules cannot rely on the object. */
const BLOCKING: ReadonlySet<FieldErrorReason> = new Set<FieldErrorReason>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

const NOT_EVALUATED: FieldError = {
  reason: 'FieldValueInvalid',
  field: '<nil>',
  message:
    'Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};

interface RuleSubject {
  readonly object: KubeObject;
  /** Undefined for a new object. */
  readonly old: KubeObject | undefined;
  /** Errors that were found before. */
  readonly errors: readonly FieldError[];
}

/** Returns all errors, as a promise only if the rules take long. Adds warnings for errors in unchanged values. */
export function checkSchemaRules(
  call: Call,
  rules: RuleValidator,
  { object, old, errors }: RuleSubject,
): readonly FieldError[] | Promise<readonly FieldError[]> {
  if (errors.some(({ reason }) => BLOCKING.has(reason))) return [...errors, NOT_EVALUATED];
  const verdict = runInSlices(rules.run(object, old, { lenient: call.route.subresource !== 'status' }));
  const conclude = (found: Awaited<typeof verdict>) => {
    for (const warning of found.warnings) call.notes.warn(warning);
    return [...errors, ...found.errors];
  };
  return verdict instanceof Promise ? verdict.then(conclude) : conclude(verdict);
}
