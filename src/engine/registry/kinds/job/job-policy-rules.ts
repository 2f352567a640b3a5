/** Validates the pod failure policy and the success policy of Jobs. */
import { type JobSpec } from '#engine/registry/kinds/job/job-schema.ts';
import { checkNotNegative, checkQualifiedName } from '#engine/registry/kinds/shared/formats.ts';
import {
  duplicateValue,
  type FieldError,
  invalidValue,
  requiredValue,
  tooLong,
  tooMany,
  unsupportedValue,
} from '#kube/field-error.ts';

const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;
const MAX_PATTERNS = 20;
const MAX_INDEXES_BYTES = 64 * 1024;
const STATUSES = ['False', 'True', 'Unknown'];

type FailureRule = NonNullable<JobSpec['podFailurePolicy']>['rules'][number];
type SuccessRule = NonNullable<JobSpec['successPolicy']>['rules'][number];

export function checkPolicies(spec: JobSpec): FieldError[] {
  return [...checkFailurePolicy(spec), ...checkSuccessPolicy(spec), ...checkReplacement(spec)];
}

/** Returns an error without the value, as Kubernetes does for some fields. */
export function invalidWhole(field: string, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${detail}` };
}

function checkFailurePolicy(spec: JobSpec): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const path = 'spec.podFailurePolicy.rules';
  return [
    ...(rules.length > MAX_RULES ? [tooMany(path, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, i) => checkFailureRule(`${path}[${i}]`, rule, spec)),
  ];
}

function checkFailureRule(path: string, rule: FailureRule, spec: JobSpec): FieldError[] {
  const { action, onExitCodes, onPodConditions = [] } = rule;
  const errors: FieldError[] = [];
  if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined) {
    errors.push(invalidValue(`${path}.action`, action, 'requires the backoffLimitPerIndex to be set'));
  }
  if (onExitCodes !== undefined) errors.push(...checkExitCodes(`${path}.onExitCodes`, onExitCodes, spec));
  errors.push(...checkPatterns(`${path}.onPodConditions`, onPodConditions));
  if (onExitCodes !== undefined && onPodConditions.length > 0) {
    errors.push(invalidWhole(path, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  }
  if (onExitCodes === undefined && onPodConditions.length === 0) {
    errors.push(invalidWhole(path, 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
  return errors;
}

function checkExitCodes(
  path: string,
  { containerName, operator, values }: NonNullable<FailureRule['onExitCodes']>,
  { template }: JobSpec,
): FieldError[] {
  const errors: FieldError[] = [];
  const containers = [...(template.spec?.containers ?? []), ...(template.spec?.initContainers ?? [])];
  if (containerName !== undefined && !containers.some(({ name }) => name === containerName)) {
    const text = 'must be one of the container or initContainer names in the pod template';
    errors.push(invalidValue(`${path}.containerName`, containerName, text));
  }
  if (values.length === 0) errors.push(invalidValue(`${path}.values`, values, 'at least one value is required'));
  if (values.length > MAX_EXIT_CODES) errors.push(tooMany(`${path}.values`, values.length, MAX_EXIT_CODES));
  const seen = new Set<number>();
  for (const [i, value] of values.entries()) {
    const at = `${path}.values[${i}]`;
    if (operator === 'In' && value === 0) errors.push(invalidValue(at, value, 'must not be 0 for the In operator'));
    if (seen.has(value)) errors.push(duplicateValue(at, value));
    seen.add(value);
  }
  const ordered = values.every((value, i) => i === 0 || values[i - 1]! <= value);
  if (!ordered) errors.push(invalidValue(`${path}.values`, values, 'must be ordered'));
  return errors;
}

function checkPatterns(path: string, patterns: NonNullable<FailureRule['onPodConditions']>): FieldError[] {
  return [
    ...(patterns.length > MAX_PATTERNS ? [tooMany(path, patterns.length, MAX_PATTERNS)] : []),
    ...patterns.flatMap(({ type, status }, i) => [
      ...checkQualifiedName(`${path}[${i}].type`, type),
      ...(STATUSES.includes(status) ? [] : [unsupportedValue(`${path}[${i}].status`, status, STATUSES)]),
    ]),
  ];
}

/** A failure can be classified only after the pod has ended. */
function checkReplacement({ podFailurePolicy, podReplacementPolicy }: JobSpec): FieldError[] {
  if (podFailurePolicy === undefined || podReplacementPolicy === undefined) return [];
  if (podReplacementPolicy === 'Failed') return [];
  return [unsupportedValue('spec.podReplacementPolicy', podReplacementPolicy, ['Failed'])];
}

function checkSuccessPolicy({ completionMode, completions = 0, successPolicy }: JobSpec): FieldError[] {
  if (successPolicy === undefined || completionMode !== 'Indexed') return [];
  const { rules } = successPolicy;
  const path = 'spec.successPolicy.rules';
  if (rules.length === 0) {
    return [requiredValue(path, 'at least one rules must be specified when the successPolicy is specified')];
  }
  return [
    ...(rules.length > MAX_RULES ? [tooMany(path, rules.length, MAX_RULES)] : []),
    ...rules.flatMap((rule, i) => checkSuccessRule(`${path}[${i}]`, rule, completions)),
  ];
}

function checkSuccessRule(path: string, rule: SuccessRule, completions: number): FieldError[] {
  const { succeededCount, succeededIndexes } = rule;
  if (succeededCount === undefined && succeededIndexes === undefined) {
    return [requiredValue(path, 'at least one of succeededCount or succeededIndexes must be specified')];
  }
  const errors: FieldError[] = [];
  let total: number | undefined;
  if (succeededIndexes !== undefined) {
    const at = `${path}.succeededIndexes`;
    if (succeededIndexes.length > MAX_INDEXES_BYTES) errors.push(tooLong(at, MAX_INDEXES_BYTES));
    const read = readIndexes(succeededIndexes, completions);
    if (typeof read === 'string') {
      errors.push(invalidValue(at, succeededIndexes, `error parsing succeededIndexes: ${read}`));
    }
    total = typeof read === 'string' ? 0 : read;
  }
  if (succeededCount === undefined) return errors;
  const at = `${path}.succeededCount`;
  const most = (count: number, of: string) => `must be less than or equal to ${count} (the number of ${of})`;
  errors.push(...checkNotNegative(at, succeededCount));
  if (succeededCount > completions) {
    errors.push(invalidValue(at, succeededCount, most(completions, 'specified completions')));
  }
  if (total !== undefined && succeededCount > total) {
    errors.push(invalidValue(at, succeededCount, most(total, 'indexes in the specified succeededIndexes field')));
  }
  return errors;
}

/** Returns how many indexes a list such as `0,2-4` contains, or why it is invalid. */
export function readIndexes(text: string, completions: number): number | string {
  let total = 0;
  let last = -1;
  for (const part of text === '' ? [] : text.split(',')) {
    const limits = part.split('-');
    if (limits.length > 2) {
      return `the fragment ${JSON.stringify(part)} violates the requirement that an index interval can have at most two parts separated by '-'`;
    }
    for (const limit of limits) {
      if (!/^[0-9]+$/.test(limit)) return `cannot convert string to integer for index: ${JSON.stringify(limit)}`;
      if (Number(limit) >= completions) return `too large index: ${JSON.stringify(limit)}`;
    }
    const [first = 0, end = first] = limits.map(Number);
    if (limits.length === 2 && first >= end) return `non-increasing order, previous: ${first}, current: ${end}`;
    if (last >= first) return `non-increasing order, previous: ${last}, current: ${first}`;
    total += end - first + 1;
    last = end;
  }
  return total;
}
