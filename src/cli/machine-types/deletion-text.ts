/** What a Job that is deleted has done, and what it has not. Pure. */
import { jobState } from '#cli/machine-types/job-state.ts';
import { countsText, isOver } from '#cli/machine-types/plan-counts.ts';
import type { Followed, Transition } from '#cli/machine-types/read-transitions.ts';
import { countsOf, entriesTable } from '#cli/machine-types/transition-table.ts';

export function deletionText({ job, plan }: Transition, followed: readonly Followed[], reset: number): string {
  const { name } = job.metadata;
  if (plan === undefined) return withoutPlan(job);
  const open = followed.filter(({ note }) => !isOver(note.state));
  const left = followed.filter(({ note }) => note.state === 'failed' || note.state === 'skipped');
  return [
    `Job ${name}: ${countsText(countsOf(followed))}.`,
    ...(open.length === 0 ? [] : ['', 'Not done:', entriesTable(open), '', ...advice(open)]),
    ...(left.length === 0 ? [] : ['', 'Failed or skipped:', entriesTable(left), '']),
    ...(reset === 0 ? [] : [`Cleared machineTypeRestartRequired of ${vms(reset)}.`]),
  ].join('\n');
}

/** One that was suspended before has been deleted once, and only the end of that is missing; so has one that is complete. */
function withoutPlan(job: Transition['job']): string {
  const { name } = job.metadata;
  return jobState(job) === 'Running' || jobState(job) === 'Failed'
    ? `Job ${name} had no plan yet: nothing was changed.`
    : `Job ${name} has no plan any more: what it changed is unknown.`;
}

function advice(open: readonly Followed[]): string[] {
  const restarts = open.filter(({ note }) => note.state === 'updated' || note.state === 'restartRequired').length;
  const untouched = open.filter(({ note }) => note.state === 'pending').length;
  const going = open.filter(({ note }) => note.state === 'restarting').length;
  return [
    ...(untouched === 0 ? [] : [`${vms(untouched)} ${untouched === 1 ? 'was' : 'were'} not changed.`]),
    ...(restarts === 0
      ? []
      : [`${vms(restarts)} will get the new type at the next restart; no job waits for it any more.`]),
    // Noted before it is asked for: the program may have been stopped in between.
    ...(going === 0
      ? []
      : [`${vms(going)} ${going === 1 ? 'was' : 'were'} about to restart; restart those that do not come up.`]),
  ];
}

const vms = (count: number) => (count === 1 ? '1 VM' : `${count} VMs`);
