/** Computes the whole status of a Job from the state of its pods and the decisions about them. */
import type { JobEnding } from '#engine/controllers/job/ending.ts';
import { formatIndexes } from '#engine/controllers/job/indexes.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { isIndexed } from '#engine/controllers/job/kinds.ts';
import { isTracked } from '#engine/controllers/job/pod-state.ts';
import type { UncountedPods, Tally } from '#engine/controllers/job/tally.ts';
import type { JobStatus } from '#engine/registry/kinds/job/job-schema.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';

type Condition = NonNullable<JobStatus['conditions']>[number];

interface StatusParts {
  readonly tally: Tally;
  readonly ending: JobEnding | undefined;
  readonly uncounted: UncountedPods;
}

interface NextStatus {
  readonly status: JobStatus & Record<string, unknown>;
  /** The Events of this change. */
  readonly events: readonly EventNote[];
}

export function decideStatus(world: JobWorld, parts: StatusParts): NextStatus {
  const { job } = world;
  const { tally, uncounted } = parts;
  const events: EventNote[] = [];
  let conditions: readonly Condition[] = job.status?.conditions ?? [];
  let startTime = job.status?.startTime;
  const now = timestamp(world.nowMs);
  const setJobCondition = (next: Omit<Condition, 'lastProbeTime' | 'lastTransitionTime'>): void => {
    conditions = ensureCondition(conditions, { ...next, lastProbeTime: now, lastTransitionTime: now });
  };
  if (job.spec.suspend !== true) startTime ??= now;

  const change = suspensionChange(world);
  // A Job that ends can no longer be suspended, but a resume before the end is still reported.
  if (change !== undefined && (parts.ending === undefined || change.event === 'Resumed')) {
    setJobCondition(change.condition);
    events.push({ type: 'Normal', reason: change.event, message: change.condition.message });
    if (change.event === 'Resumed') startTime = now;
  }
  if (parts.ending !== undefined) {
    const { type, reason, message } = parts.ending;
    setJobCondition({ type, status: 'True', reason, message });
  }
  const final = parts.ending && finalCondition(world, parts);
  if (final !== undefined) {
    setJobCondition({ ...final, status: 'True' });
    events.push(...finalEvents(world, tally, final));
    // A Job that ends has a start time, except a suspended Job with 0 completions.
    if (job.spec.suspend !== true || job.spec.completions !== 0) startTime ??= now;
  }
  const complete = final?.type === 'Complete';
  return {
    events,
    status: {
      ...podCounts(tally),
      ...(isIndexed(job.spec) && tally.completedIndexes.length > 0
        ? { completedIndexes: formatIndexes(tally.completedIndexes) }
        : {}),
      ...(tally.failedIndexes === undefined ? {} : { failedIndexes: formatIndexes(tally.failedIndexes) }),
      ...(conditions.length > 0 ? { conditions: [...conditions] } : {}),
      ...(startTime === undefined ? {} : { startTime }),
      // The completion time is never before the start time, even if the clock was set back.
      ...(complete ? { completionTime: startTime !== undefined && startTime > now ? startTime : now } : {}),
      uncountedTerminatedPods: {
        ...(uncounted.succeeded.length > 0 ? { succeeded: [...uncounted.succeeded] } : {}),
        ...(uncounted.failed.length > 0 ? { failed: [...uncounted.failed] } : {}),
      },
    },
  };
}

/** Omits zero counts as Kubernetes does. */
function podCounts({ active, ready, terminating, counted }: Tally): JobStatus {
  return {
    ...(active.length > 0 ? { active: active.length } : {}),
    ready,
    terminating,
    ...(counted.succeeded > 0 ? { succeeded: counted.succeeded } : {}),
    ...(counted.failed > 0 ? { failed: counted.failed } : {}),
  };
}

interface FinalCondition {
  readonly type: 'Complete' | 'Failed';
  readonly reason: string;
  readonly message: string;
}

/** Returns the final condition once the ending is recorded in the status and no pod remains that could affect it. */
function finalCondition({ pods }: JobWorld, { tally, ending, uncounted }: StatusParts): FinalCondition | undefined {
  if (ending?.isRecorded !== true) return undefined;
  if (uncounted.succeeded.length + uncounted.failed.length > 0) return undefined;
  if (tally.active.length + tally.terminating > 0 || pods.some(isTracked)) return undefined;
  const { reason, message } = ending;
  return { type: ending.type === 'FailureTarget' ? 'Failed' : 'Complete', reason, message };
}

function finalEvents({ job }: JobWorld, { counted }: Tally, { type, reason, message }: FinalCondition): EventNote[] {
  if (type === 'Failed') return [{ type: 'Warning', reason, message }];
  const completed: EventNote = { type: 'Normal', reason: 'Completed', message: 'Job completed' };
  if (job.spec.completions === undefined || counted.succeeded <= job.spec.completions) return [completed];
  const tooMany = 'Too many succeeded pods running after completion count reached';
  return [{ type: 'Warning', reason: 'TooManySucceededPods', message: tooMany }, completed];
}

interface SuspensionChange {
  readonly condition: { type: 'Suspended'; status: string; reason: string; message: string };
  readonly event: 'Suspended' | 'Resumed';
}

/** Returns the change of condition Suspended, or undefined. A Job that was never suspended has no such condition. */
function suspensionChange({ job: { metadata, spec, status } }: JobWorld): SuspensionChange | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const before = status?.conditions?.find(({ type }) => type === 'Suspended')?.status === 'True';
  if (before === (spec.suspend === true)) return undefined;
  const type = 'Suspended';
  return before
    ? { condition: { type, status: 'False', reason: 'JobResumed', message: 'Job resumed' }, event: 'Resumed' }
    : { condition: { type, status: 'True', reason: 'JobSuspended', message: 'Job suspended' }, event: 'Suspended' };
}

function ensureCondition(list: readonly Condition[], next: Condition): readonly Condition[] {
  const at = list.findIndex(({ type }) => type === next.type);
  if (at < 0) return [...list, next];
  const { status, reason, message } = list[at]!;
  if (status === next.status && (reason ?? '') === next.reason && (message ?? '') === next.message) return list;
  return list.with(at, next);
}
