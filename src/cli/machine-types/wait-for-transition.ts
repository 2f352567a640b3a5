/** `--wait`: shows how far a Job is, until it has ended. */
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { keepWaiting } from '#cli/keep-waiting.ts';
import { failureOf, hasEnded, jobState, logsText } from '#cli/machine-types/job-state.ts';
import { countStates, countsText, isOver, progressBar } from '#cli/machine-types/plan-counts.ts';
import { ProgressLine, type MaybeTerminal } from '#cli/machine-types/progress-line.ts';
import { findJob, readTransition, type Transition } from '#cli/machine-types/read-transitions.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';

const LOOK_EVERY_MS = 1000;
/** A server that restarts is away for so long at most. */
const MAX_FAULTS = 60;

export interface WaitOptions {
  /** After more failures than these the Job does nothing more, though it may still be called running. */
  readonly maxFailures: number;
  readonly clock: Clock;
  readonly stderr: MaybeTerminal;
  readonly print: (line: string) => void;
}

type Api = Pick<ApiConnection, 'get' | 'namespace'>;

/** Prints what came of it. Throws CommandError where the Job, or the change of a VM, has failed. */
export async function waitForTransition(api: Api, name: string, options: WaitOptions): Promise<void> {
  const { clock, stderr, print, maxFailures } = options;
  const line = new ProgressLine(stderr, clock);
  const say = (text: string) => void stderr.write(`${text}\n`);
  for (let faults = 0; ;) {
    const seen = await look(api, name, say);
    if (seen === 'gone') throw new CommandError(`Job ${name} was deleted`);
    if ('fault' in seen && ++faults > MAX_FAULTS) throw seen.fault;
    if ('job' in seen) {
      faults = 0;
      if (hasEnded(seen.job) || countFailed(seen) > maxFailures) {
        line.end(shownLine(seen));
        print(outcome(seen, maxFailures));
        return;
      }
      line.show(shownLine(seen));
    }
    await keepWaiting(clock, LOOK_EVERY_MS);
  }
}

type Seen = Transition | 'gone' | { readonly fault: unknown };

/** A server that refuses will refuse again; one that does not answer may do so later. */
async function look(api: Api, name: string, say: (text: string) => void): Promise<Seen> {
  try {
    const job = await findJob(api, name);
    return job === undefined ? 'gone' : await readTransition(api, job, say);
  } catch (fault) {
    if (fault instanceof ApiError && fault.code < 500) throw fault;
    return { fault };
  }
}

export function shownLine({ job, plan, notes }: Transition): string {
  if (plan === undefined) return `${job.metadata.name}: ${jobState(job)}, no plan yet`;
  return progressBar(plan.length, countStates(plan.map((_, index) => noteOf(notes, index).state)));
}

function countFailed({ plan = [], notes }: Transition): number {
  return plan.filter((_, index) => noteOf(notes, index).state === 'failed').length;
}

/** What is told at the end. Throws CommandError where not all is well. */
export function outcome({ job, plan, notes }: Transition, maxFailures = Infinity): string {
  const { name } = job.metadata;
  const all = (plan ?? []).map((entry, index) => ({ entry, note: noteOf(notes, index) }));
  const counts = plan === undefined ? 'it had no plan yet' : countsText(countStates(all.map(({ note }) => note.state)));
  const failed = all.filter(({ note }) => note.state === 'failed');
  const told = shortened([...failed, ...all.filter(({ note }) => note.state !== 'failed' && isOver(note.state))], name);
  const state = jobState(job);
  if (state === 'Complete' && failed.length === 0) return [`Job ${name} is complete: ${counts}`, ...told].join('\n');
  const how =
    failed.length > maxFailures
      ? `stopped, because more than ${maxFailures} of its VMs failed`
      : state === 'Failed'
        ? `failed (${failureOf(job)})`
        : 'has ended';
  // Where no VM is to blame, only the program knows what is.
  const where = failed.length === 0 ? [logsText(job)] : [];
  throw new CommandError([`Job ${name} ${how}: ${counts}`, ...told, ...where].join('\n'));
}

type Told = { readonly entry: PlanEntry; readonly note: EntryNote };
const MAX_TOLD = 50;

/** Those of which there is something to say, such as that a guest sees other devices than before. */
function shortened(all: readonly Told[], job: string): string[] {
  const worth = all.filter(({ note }) => note.state === 'failed' || note.reason !== undefined);
  const rest = worth.length - MAX_TOLD;
  const more = rest > 0 ? [`  and ${rest} more: virtctl update machine-types list ${job}`] : [];
  return [...worth.slice(0, MAX_TOLD).map(faultText), ...more];
}

function faultText({ entry, note }: Told): string {
  return `  ${entry.namespace}/${entry.name}: ${note.reason ?? 'no reason given'}`;
}

const PENDING: EntryNote = { state: 'pending' };
const noteOf = (notes: Transition['notes'], index: number) => notes.get(index) ?? PENDING;
