/** What the status of a pod tells of its runs under agents before this one: processes end with their agent. Pure. */
import type { ContainerState, Pod } from '#kube/core-kinds.ts';
import type { Exit } from '#node/pods/program-run.ts';

export interface EarlierRuns {
  readonly starts: number;
  readonly lastExit: Exit | undefined;
}

/** As by SIGKILL. */
const LOST = 137;

export function earlierRuns({ status }: Pod, nowMs: number): EarlierRuns {
  const [container] = status?.containerStatuses ?? [];
  const { running, terminated = container?.lastState?.terminated } = container?.state ?? {};
  const lastExit =
    running === undefined
      ? exitOf(terminated)
      : { code: LOST, startedAtMs: timeOf(running.startedAt, nowMs), finishedAtMs: nowMs };
  return { starts: lastExit === undefined ? 0 : (container?.restartCount ?? 0) + 1, lastExit };
}

function exitOf(ended: ContainerState['terminated']): Exit | undefined {
  if (ended === undefined) return undefined;
  const finishedAtMs = timeOf(ended.finishedAt, 0);
  return { code: ended.exitCode, startedAtMs: timeOf(ended.startedAt, finishedAtMs), finishedAtMs };
}

function timeOf(text: string | undefined, otherwise: number): number {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? otherwise : ms;
}
