/**
 * Reads the earlier runs of a pod's program from its status. They were started by earlier agents, and ended with them at the
 * latest. Pure.
 */
import type { ContainerState, Pod } from '#kube/core-kinds.ts';
import type { EarlierRuns, Exit } from '#node/pods/program-run.ts';

/** The exit code after SIGKILL. */
const KILLED_EXIT_CODE = 137;

export function readEarlierRuns({ status }: Pod, nowMs: number): EarlierRuns {
  const [container] = status?.containerStatuses ?? [];
  const { running, terminated = container?.lastState?.terminated } = container?.state ?? {};
  const lastExit =
    running === undefined
      ? parseExit(terminated)
      : { code: KILLED_EXIT_CODE, startedAtMs: parseTime(running.startedAt, nowMs), finishedAtMs: nowMs };
  return { starts: lastExit === undefined ? 0 : (container?.restartCount ?? 0) + 1, lastExit };
}

function parseExit(ended: ContainerState['terminated']): Exit | undefined {
  if (ended === undefined) return undefined;
  const finishedAtMs = parseTime(ended.finishedAt, 0);
  return { code: ended.exitCode, startedAtMs: parseTime(ended.startedAt, finishedAtMs), finishedAtMs };
}

function parseTime(text: string | undefined, fallbackMs: number): number {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? fallbackMs : ms;
}
