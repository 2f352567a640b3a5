/** `--wait`: shows the progress of a Job until it ends. */
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { waitUntil, type WaitProgress, type WaitState } from '#cli/wait/wait-until.ts';
import { jobFailureText, hasJobEnded, jobState, logsText } from '#cli/machine-types/job-state.ts';
import { countFinal, countStates, countsText, isFinalState } from '#cli/machine-types/plan-counts.ts';
import { findTransitionJob, readTransition, type Transition } from '#cli/machine-types/read-transitions.ts';
import { barText, remainingText } from '#lib/terminal/progress-text.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';

interface WaitOptions {
  /** After more failures than this, the Job does nothing more, although it may still be Running. */
  readonly maxFailures: number;
  readonly limitMs: number;
  readonly status: StatusOutput;
  readonly print: (line: string) => void;
}

type Api = Pick<ApiConnection, 'get' | 'namespace'>;

/** Prints the result. Throws CommandError if the Job or the change of a VM has failed. */
export async function waitForTransition(api: Api, name: string, options: WaitOptions): Promise<void> {
  const { print, maxFailures, status, limitMs } = options;
  const beganAtMs = status.clock.elapsed();
  const wait = {
    limitMs,
    problem: `Cannot confirm that job ${name} is complete`,
    advice: `it continues, see virtctl update machine-types list ${name}; virtctl update machine-types delete ${name} stops it`,
    read: async (): Promise<WaitState<Transition>> => {
      const job = await findTransitionJob(api, name);
      if (job === undefined) return { failed: `Job ${name} was deleted` };
      const transition = await readTransition(api, job, status.report);
      const progress = progressOf(transition, status.clock.elapsed() - beganAtMs);
      const isOver = hasJobEnded(job) || countFailed(transition) > maxFailures;
      // The phase stays the same, because the counts change with every VM.
      return isOver ? { done: transition, last: progress.plain } : { waiting: { ...progress, phase: 'running' } };
    },
  };
  // The result is printed when the live line has ended, which it would otherwise be appended to.
  print(outcomeText(await waitUntil(wait, status), maxFailures));
}

/** Returns the progress of a Job that is watched since `elapsedMs`, from which the remaining time is estimated. */
export function progressOf({ job, plan, notes }: Transition, elapsedMs: number): WaitProgress {
  const { name } = job.metadata;
  if (plan === undefined) return { plain: `${name}: ${jobState(job)}, no plan yet` };
  const counts = countStates(plan.map((_, index) => noteOf(notes, index).state));
  const [over, total] = [countFinal(counts), plan.length];
  const detail = `${over}/${total}: ${countsText(counts)}${remainingText(total - over, (over * 1000) / Math.max(elapsedMs, 1))}`;
  return {
    plain: `${name}: ${detail}`,
    live: (columns) => barText({ label: name, done: over, total, detail }, columns),
  };
}

function countFailed({ plan = [], notes }: Transition): number {
  return plan.filter((_, index) => noteOf(notes, index).state === 'failed').length;
}

/** Renders the result. Throws CommandError if something failed. */
export function outcomeText({ job, plan, notes }: Transition, maxFailures = Infinity): string {
  const { name } = job.metadata;
  const all = (plan ?? []).map((entry, index) => ({ entry, note: noteOf(notes, index) }));
  const counts = plan === undefined ? 'it had no plan yet' : countsText(countStates(all.map(({ note }) => note.state)));
  const failed = all.filter(({ note }) => note.state === 'failed');
  const lines = entryLines(
    [...failed, ...all.filter(({ note }) => note.state !== 'failed' && isFinalState(note.state))],
    name,
  );
  const state = jobState(job);
  if (state === 'Complete' && failed.length === 0) return [`Job ${name} is complete: ${counts}`, ...lines].join('\n');
  const how =
    failed.length > maxFailures
      ? `stopped, because more than ${maxFailures} of its VMs failed`
      : state === 'Failed'
        ? `failed (${jobFailureText(job)})`
        : 'has ended';
  // If no VM failed, only the log of the Job contains the cause.
  const where = failed.length === 0 ? [logsText(job)] : [];
  throw new CommandError([`Job ${name} ${how}: ${counts}`, ...lines, ...where].join('\n'));
}

type ReportedEntry = { readonly entry: PlanEntry; readonly note: EntryNote };
const MAX_REPORTED = 50;

/** Renders the entries that failed or have a note, for example that the guest sees other devices. */
function entryLines(all: readonly ReportedEntry[], job: string): string[] {
  const worth = all.filter(({ note }) => note.state === 'failed' || note.reason !== undefined);
  const rest = worth.length - MAX_REPORTED;
  const more = rest > 0 ? [`  and ${rest} more: virtctl update machine-types list ${job}`] : [];
  return [...worth.slice(0, MAX_REPORTED).map(entryLine), ...more];
}

function entryLine({ entry, note }: ReportedEntry): string {
  return `  ${entry.namespace}/${entry.name}: ${note.reason ?? 'no reason given'}`;
}

const PENDING: EntryNote = { state: 'pending' };
const noteOf = (notes: Transition['notes'], index: number) => notes.get(index) ?? PENDING;
