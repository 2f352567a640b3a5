/** The state of a Job. Pure. */
import type { TransitionJob } from '#api/machine-types/kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';

/** The label with the Job's name on its pods. */
export const JOB_NAME_LABEL = 'batch.kubernetes.io/job-name';

type JobState = 'Running' | 'Suspended' | 'Complete' | 'Failed' | 'Terminating';

/** Returns the state as kubectl names it. */
export function jobState({ metadata, spec, status }: TransitionJob): JobState {
  const holds = (type: string) =>
    status?.conditions?.some((one) => one.type === type && one.status === 'True') === true;
  if (holds('Complete')) return 'Complete';
  if (holds('Failed')) return 'Failed';
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  return spec?.suspend === true ? 'Suspended' : 'Running';
}

export function hasJobEnded(job: TransitionJob): boolean {
  const state = jobState(job);
  return state === 'Complete' || state === 'Failed';
}

/** Returns the message of the condition Failed. */
export function jobFailureText({ status }: TransitionJob): string {
  const { reason, message } = status?.conditions?.find(({ type }) => type === 'Failed') ?? {};
  return message || reason || 'no reason given';
}

/** Returns a hint to the log, which contains the cause of a failure. */
export function logsText({ metadata }: TransitionJob): string {
  return `See kubectl logs job/${metadata.name} -n ${SYSTEM_NAMESPACE}`;
}

/** Reports whether the Job controller has suspended the Job and creates no more pods. */
export function isSuspended({ status }: TransitionJob): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Suspended' && is === 'True') === true;
}
