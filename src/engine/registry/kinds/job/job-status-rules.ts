/**
 * Validates a Job's status, regardless of the controller that writes it: a terminal condition is final, counters do not
 * decrease, and a Job finishes only after its pods. Writes that do not change the status are not checked.
 */
import { invalidWhole, readIndexes } from '#engine/registry/kinds/job/job-policy-rules.ts';
import { type JobSpec, type JobStatus } from '#engine/registry/kinds/job/job-schema.ts';
import { checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { isTrue } from '#kube/conditions.ts';
import { duplicateValue, type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';

interface StatusUpdate {
  readonly spec: JobSpec;
  readonly status: JobStatus;
  readonly old: JobStatus;
}

export function checkJobStatus(written: StatusUpdate): FieldError[] {
  const { status, old } = written;
  if (sameValue(status, old)) return [];
  return [...checkCounts(written), ...checkConditions(written), ...checkTimes(written), ...checkIndexes(written)];
}

const is = ({ conditions }: JobStatus, type: string): boolean => isTrue(conditions, type);
const isFinished = (status: JobStatus): boolean => is(status, 'Complete') || is(status, 'Failed');
const COUNTS = ['active', 'succeeded', 'failed', 'ready', 'terminating'] as const;

function checkCounts({ spec, status, old }: StatusUpdate): FieldError[] {
  const errors = COUNTS.flatMap((field) => checkNotNegative(`status.${field}`, status[field]));
  errors.push(...checkUncounted(status));
  const { active = 0, ready = 0, failed = 0, succeeded = 0, terminating = 0 } = status;
  if (ready > active) errors.push(invalidValue('status.ready', ready, 'cannot set more ready pods than active'));
  if (failed < (old.failed ?? 0)) {
    errors.push(invalidValue('status.failed', failed, 'cannot decrease the failed counter'));
  }
  // A scaled-down indexed Job drops the surplus indexes.
  const shrinks = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism;
  if (succeeded < (old.succeeded ?? 0) && !shrinks) {
    errors.push(invalidValue('status.succeeded', succeeded, 'cannot decrease the succeeded counter'));
  }
  if (!isFinished(status)) return errors;
  if (active > 0) errors.push(invalidValue('status.active', active, 'active>0 is invalid for finished job'));
  if (terminating > 0) {
    errors.push(invalidValue('status.terminating', terminating, 'terminating>0 is invalid for finished job'));
  }
  const { uncountedTerminatedPods: left } = status;
  if ((left?.succeeded?.length ?? 0) + (left?.failed?.length ?? 0) > 0) {
    const text = 'uncountedTerminatedPods needs to be empty for finished job';
    errors.push(invalidValue('status.uncountedTerminatedPods', left, text));
  }
  return errors;
}

function checkUncounted({ uncountedTerminatedPods }: JobStatus): FieldError[] {
  const seen = new Set<string>();
  return (['succeeded', 'failed'] as const).flatMap((list) =>
    (uncountedTerminatedPods?.[list] ?? []).flatMap((uid, i) => {
      const at = `status.uncountedTerminatedPods.${list}[${i}]`;
      if (uid === '') return [invalidValue(at, uid, 'must not be empty')];
      if (seen.has(uid)) return [duplicateValue(at, uid)];
      seen.add(uid);
      return [];
    }),
  );
}

function checkConditions({ status, old }: StatusUpdate): FieldError[] {
  const invalid = (text: string) => [invalidWhole('status.conditions', text)];
  const both = (a: string, b: string) => is(status, a) && is(status, b);
  return [
    ...['Failed', 'Complete', 'FailureTarget'].flatMap((type) =>
      is(old, type) && !is(status, type) ? invalid(`cannot disable the terminal ${type}=True condition`) : [],
    ),
    ...(is(old, 'SuccessCriteriaMet') && !is(status, 'SuccessCriteriaMet')
      ? invalid('cannot disable the SuccessCriteriaMet=True condition')
      : []),
    ...(both('Complete', 'Failed') ? invalid('cannot set Complete=True and Failed=true conditions') : []),
    ...(both('Complete', 'FailureTarget') ? invalid('cannot set Complete=True and FailureTarget=true conditions') : []),
    ...(both('SuccessCriteriaMet', 'Failed')
      ? invalid('cannot set SuccessCriteriaMet=True and Failed=true conditions')
      : []),
    ...(both('SuccessCriteriaMet', 'FailureTarget')
      ? invalid('cannot set SuccessCriteriaMet=True and FailureTarget=true conditions')
      : []),
    ...(is(status, 'Failed') && !is(status, 'FailureTarget')
      ? invalid('cannot set Failed=True condition without the FailureTarget=true condition')
      : []),
    ...(is(status, 'Complete') && !is(status, 'SuccessCriteriaMet')
      ? invalid('cannot set Complete=True condition without the SuccessCriteriaMet=true condition')
      : []),
  ];
}

function checkTimes({ spec, status, old }: StatusUpdate): FieldError[] {
  const { startTime, completionTime } = status;
  const at = 'status.completionTime';
  const errors: FieldError[] = [];
  if (completionTime !== undefined && !is(status, 'Complete')) {
    const text = 'cannot set completionTime when there is no Complete=True condition';
    errors.push(invalidValue(at, completionTime, text));
  }
  if (completionTime === undefined && is(status, 'Complete')) {
    errors.push(requiredValue(at, 'completionTime is required for Complete jobs'));
  }
  if (startTime !== undefined && completionTime !== undefined && Date.parse(completionTime) < Date.parse(startTime)) {
    errors.push(invalidValue(at, completionTime, 'completionTime cannot be set before startTime'));
  }
  if (completionTime !== undefined && old.completionTime !== undefined && completionTime !== old.completionTime) {
    errors.push(invalidValue(at, completionTime, 'completionTime cannot be mutated'));
  }
  const nothingToDo = spec.suspend === true && spec.completions === 0;
  if (startTime === undefined && isFinished(status) && !nothingToDo) {
    errors.push(requiredValue('status.startTime', 'startTime is required for finished job'));
  }
  // Resuming a Job resets the start time; no other change of it is valid.
  const mayChangeStart = old.startTime === undefined || spec.suspend === true || is(old, 'Suspended');
  if (startTime !== old.startTime && !mayChangeStart) {
    errors.push(requiredValue('status.startTime', 'startTime cannot be removed for unsuspended job'));
  }
  return errors;
}

function checkIndexes({ spec, status, old }: StatusUpdate): FieldError[] {
  const { completions = 0 } = spec;
  const errors: FieldError[] = [];
  const { completedIndexes, failedIndexes } = status;
  if (completedIndexes !== undefined && completedIndexes !== old.completedIndexes) {
    const at = 'status.completedIndexes';
    const read = readIndexes(completedIndexes, completions);
    if (spec.completionMode !== 'Indexed' && completedIndexes !== '') {
      const text = 'cannot set non-empty completedIndexes when non-indexed completion mode';
      errors.push(invalidValue(at, completedIndexes, text));
    } else if (typeof read === 'string') {
      errors.push(invalidValue(at, completedIndexes, `error parsing completedIndexes: ${read}`));
    }
  }
  if (failedIndexes !== undefined && failedIndexes !== old.failedIndexes) {
    const at = 'status.failedIndexes';
    const read = readIndexes(failedIndexes, completions);
    if (spec.backoffLimitPerIndex === undefined) {
      const text = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
      errors.push(invalidValue(at, failedIndexes, text));
    } else if (typeof read === 'string') {
      errors.push(invalidValue(at, failedIndexes, `error parsing failedIndexes: ${read}`));
    }
  }
  return errors;
}
