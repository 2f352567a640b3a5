/** Reads the durations of a Job's phases from its log. Pure. */

export interface Spans {
  /** Time until the plan was written, including the start of the program and the first lists. */
  readonly planSeconds: number;
  /** Time from the plan until the last VM was done. */
  readonly updateSeconds: number;
  readonly done: number;
}

/** Parses the log. `fromMs` is when the program was called. Throws if the log has no plan. */
export function parseSpans(log: string, fromMs: number): Spans {
  let [plannedMs, lastMs, done] = [Number.NaN, Number.NaN, 0];
  for (const line of log.split('\n')) {
    if (!line.startsWith('{')) continue;
    const { time, msg, state } = JSON.parse(line) as { time: string; msg: string; state?: string };
    if (msg === 'the plan is written') plannedMs = Date.parse(time);
    if (state !== 'done') continue;
    lastMs = Date.parse(time);
    done++;
  }
  if (Number.isNaN(plannedMs)) throw new Error('Cannot read the log of the Job: it has no line about the plan');
  return { planSeconds: (plannedMs - fromMs) / 1000, updateSeconds: (lastMs - plannedMs) / 1000, done };
}
