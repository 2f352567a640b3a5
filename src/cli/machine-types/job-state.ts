/** How a Job is. Pure. */
import type { Job } from '#api/machine-types/kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';

/** On the pods of a Job: its name. */
export const JOB_NAME_LABEL = 'batch.kubernetes.io/job-name';

export type JobState = 'Running' | 'Suspended' | 'Complete' | 'Failed' | 'Terminating';

/** In kubectl's words. */
export function jobState({ metadata, spec, status }: Job): JobState {
  const holds = (type: string) =>
    status?.conditions?.some((one) => one.type === type && one.status === 'True') === true;
  if (holds('Complete')) return 'Complete';
  if (holds('Failed')) return 'Failed';
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  return spec?.suspend === true ? 'Suspended' : 'Running';
}

export function hasEnded(job: Job): boolean {
  const state = jobState(job);
  return state === 'Complete' || state === 'Failed';
}

/** Why it failed, in the words of whoever says so. */
export function failureOf({ status }: Job): string {
  const { reason, message } = status?.conditions?.find(({ type }) => type === 'Failed') ?? {};
  return message || reason || 'no reason given';
}

/** Where its program says why: a Job knows only that it failed. */
export function logsText({ metadata }: Job): string {
  return `See kubectl logs job/${metadata.name} -n ${SYSTEM_NAMESPACE}`;
}

/** Whether its controller has seen that it is to stand still, and makes no more pods. */
export function isSuspended({ status }: Job): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Suspended' && is === 'True') === true;
}
