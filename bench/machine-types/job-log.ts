/** Where the time of a Job went, by its own log. Pure. */

export interface Spans {
  /** Until its plan was written: the start of the program and the first lists are part of it. */
  readonly planSeconds: number;
  /** From then on until the last VM was done. */
  readonly updateSeconds: number;
  readonly done: number;
}

/** `fromMs`: when the program was called. Throws where the log does not tell. */
export function spansOf(log: string, fromMs: number): Spans {
  let [plannedMs, lastMs, done] = [Number.NaN, Number.NaN, 0];
  for (const line of log.split('\n')) {
    if (!line.startsWith('{')) continue;
    const { time, msg, state } = JSON.parse(line) as { time: string; msg: string; state?: string };
    if (msg === 'the plan is written') plannedMs = Date.parse(time);
    if (state !== 'done') continue;
    lastMs = Date.parse(time);
    done++;
  }
  if (Number.isNaN(plannedMs)) throw new Error('Cannot read the log of the Job: it tells of no plan');
  return { planSeconds: (plannedMs - fromMs) / 1000, updateSeconds: (lastMs - plannedMs) / 1000, done };
}
