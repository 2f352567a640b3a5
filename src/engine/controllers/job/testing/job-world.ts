/** Builders for tests of Job decisions: valid values that take overrides. */
import { NO_FAILURES } from '#engine/controllers/job/backoff.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { type BatchJob, TRACKING_FINALIZER } from '#engine/controllers/job/kinds.ts';
import { INDEX_KEY } from '#engine/controllers/job/pod-state.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

export const NOW = '2026-01-01T12:00:00Z';
export const NOW_MS = Date.parse(NOW);
export const ago = (seconds: number): string => new Date(NOW_MS - seconds * 1000).toISOString().replace('.000', '');

export function aJob(
  spec: Partial<BatchJob['spec']> = {},
  status: BatchJob['status'] = {},
  metadata: ObjectMeta = {},
): Stored<BatchJob> {
  const template = {
    metadata: { labels: { app: 'x' } },
    spec: { restartPolicy: 'Never' as const, containers: [{ name: 'main', image: 'i' }] },
  };
  const selector = { matchLabels: { app: 'x' } };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: 'work',
      namespace: 'ns',
      uid: 'job-uid',
      resourceVersion: '1',
      creationTimestamp: ago(3600),
      ...metadata,
    },
    spec: { parallelism: 1, completions: 1, backoffLimit: 6, template, selector, ...spec },
    status: { startTime: ago(60), ...status },
  };
}

type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

export interface PodOptions {
  readonly phase?: Phase;
  /** True for a pod under deletion. */
  readonly deleting?: boolean;
  /** True for a pod without the tracking finalizer. */
  readonly counted?: boolean;
  readonly index?: number;
  readonly exitCode?: number;
  readonly endedAgo?: number;
  readonly annotations?: Record<string, string>;
  readonly status?: EnginePod['status'];
}

export function aPod(name: string, options: PodOptions = {}): Stored<EnginePod> {
  const { phase = 'Running', deleting, counted, index, exitCode = phase === 'Failed' ? 1 : 0, endedAgo = 0 } = options;
  const ended = phase === 'Succeeded' || phase === 'Failed';
  const state = ended ? { terminated: { exitCode, finishedAt: ago(endedAgo) } } : {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'ns',
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: ago(600),
      labels: { app: 'x' },
      annotations: { ...(index === undefined ? {} : { [INDEX_KEY]: String(index) }), ...options.annotations },
      ...(counted ? {} : { finalizers: [TRACKING_FINALIZER] }),
      ...(deleting ? { deletionTimestamp: ago(endedAgo) } : {}),
    },
    spec: { containers: [{ name: 'main', image: 'i' }] },
    status: {
      phase,
      containerStatuses: [{ name: 'main', image: 'i', imageID: '', ready: !ended, restartCount: 0, state }],
      ...options.status,
    },
  };
}

export function aWorld(
  job: Stored<BatchJob>,
  pods: readonly Stored<EnginePod>[] = [],
  world: Partial<JobWorld> = {},
): JobWorld {
  const names = new Set(pods.map(({ metadata }) => metadata.name));
  const isTaken = (name: string): boolean => names.has(name);
  return { job, pods, orphans: [], failures: NO_FAILURES, isTaken, nowMs: NOW_MS, ...world };
}
