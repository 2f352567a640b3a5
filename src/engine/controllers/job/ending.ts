/**
 * Decides whether and how a Job ends. A recorded decision is final: a Job with SuccessCriteriaMet cannot fail, and one
 * with FailureTarget cannot succeed.
 *
 *   running ──► SuccessCriteriaMet ──► all pods ended and counted ──► Complete
 *      └──────► FailureTarget ───────► all pods ended and counted ──► Failed
 */
import { matchFailurePolicy } from '#engine/controllers/job/failure-policy.ts';
import { countIndexes, countShared, parseIndexes } from '#engine/controllers/job/indexes.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { hasFailed } from '#engine/controllers/job/pod-state.ts';
import type { Tally } from '#engine/controllers/job/tally.ts';
import { findCondition } from '#kube/conditions.ts';

export interface JobEnding {
  readonly type: 'SuccessCriteriaMet' | 'FailureTarget';
  readonly reason: string;
  readonly message: string;
  /** True if the status already contains it. */
  readonly isRecorded?: boolean;
}

export function decideEnding(world: JobWorld, tally: Tally): JobEnding | undefined {
  for (const rule of rules) {
    const ending = rule(world, tally);
    if (ending !== undefined) return ending;
  }
  return undefined;
}

type EndingRule = (world: JobWorld, tally: Tally) => JobEnding | undefined;

const failJob = (reason: string, message: string): JobEnding => ({ type: 'FailureTarget', reason, message });
const completeJob = (reason: string, message: string): JobEnding => ({ type: 'SuccessCriteriaMet', reason, message });

const rules: readonly EndingRule[] = [
  keepRecordedEnding,
  failByPolicy,
  failByBackoffLimit,
  failByDeadline,
  failByIndexes,
  succeedByPolicy,
  succeedByCompletions,
];

function keepRecordedEnding({ job }: JobWorld): JobEnding | undefined {
  for (const type of ['SuccessCriteriaMet', 'FailureTarget'] as const) {
    const found = findCondition(job.status?.conditions, type);
    if (found?.status !== 'True') continue;
    return { type, reason: found.reason ?? '', message: found.message ?? '', isRecorded: true };
  }
  return undefined;
}

function failByPolicy({ job: { spec }, pods }: JobWorld): JobEnding | undefined {
  if (spec.podFailurePolicy === undefined) return undefined;
  for (const pod of pods) {
    const { message } = hasFailed(pod, spec) ? matchFailurePolicy(spec.podFailurePolicy, pod) : {};
    if (message !== undefined) return failJob('PodFailurePolicy', message);
  }
  return undefined;
}

function failByBackoffLimit(world: JobWorld, tally: Tally): JobEnding | undefined {
  const { backoffLimit = 0 } = world.job.spec;
  if (tally.failed <= backoffLimit && !restartedTooOften(world, backoffLimit)) return undefined;
  return failJob('BackoffLimitExceeded', 'Job has reached the specified backoff limit');
}

/** With restartPolicy OnFailure the node restarts the containers. Restarts then count as failures. */
function restartedTooOften({ job: { spec }, pods }: JobWorld, limit: number): boolean {
  if (spec.template.spec?.restartPolicy !== 'OnFailure') return false;
  let restarts = 0;
  for (const { status } of pods) {
    if (status?.phase !== 'Running' && status?.phase !== 'Pending') continue;
    for (const { restartCount } of status.initContainerStatuses ?? []) restarts += restartCount;
    for (const { restartCount } of status.containerStatuses ?? []) restarts += restartCount;
  }
  return restarts > 0 && restarts >= limit;
}

function failByDeadline(world: JobWorld): JobEnding | undefined {
  if (deadlineMs(world) > 0) return undefined;
  return failJob('DeadlineExceeded', 'Job was active longer than specified deadline');
}

/** Returns how long the Job may still be active; Infinity without a deadline. */
export function deadlineMs({ job: { spec, status }, nowMs }: JobWorld): number {
  if (spec.activeDeadlineSeconds === undefined || spec.suspend === true) return Infinity;
  // The deadline starts again when a Job is resumed.
  const resumed = findCondition(status?.conditions, 'Suspended')?.status === 'True';
  const startMs = status?.startTime === undefined || resumed ? nowMs : Date.parse(status.startTime);
  return startMs + spec.activeDeadlineSeconds * 1000 - nowMs;
}

function failByIndexes({ job: { spec } }: JobWorld, tally: Tally): JobEnding | undefined {
  const failedCount = countIndexes(tally.failedIndexes ?? []);
  if (failedCount === 0) return undefined;
  if (spec.maxFailedIndexes !== undefined && failedCount > spec.maxFailedIndexes) {
    const message = 'Job has exceeded the specified maximal number of failed indexes';
    return failJob('MaxFailedIndexesExceeded', message);
  }
  if (failedCount + countIndexes(tally.completedIndexes) < (spec.completions ?? 0)) return undefined;
  return failJob('FailedIndexes', 'Job has failed indexes');
}

function succeedByPolicy({ job: { spec } }: JobWorld, { completedIndexes }: Tally): JobEnding | undefined {
  const { successPolicy, completions = 0 } = spec;
  if (successPolicy === undefined || completedIndexes.length === 0) return undefined;
  const index = successPolicy.rules.findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) {
      return succeededCount !== undefined && countIndexes(completedIndexes) >= succeededCount;
    }
    const wanted = parseIndexes(succeededIndexes, completions);
    return wanted.length > 0 && countShared(wanted, completedIndexes) >= (succeededCount ?? countIndexes(wanted));
  });
  return index < 0 ? undefined : completeJob('SuccessPolicy', `Matched rules at index ${index}`);
}

/** Without `completions`, one success is enough. Pods that still run may finish. */
function succeedByCompletions({ job: { spec } }: JobWorld, { succeeded, active }: Tally): JobEnding | undefined {
  if (active.length > 0 || succeeded < (spec.completions ?? 1)) return undefined;
  return completeJob('CompletionsReached', 'Reached expected number of succeeded pods');
}
