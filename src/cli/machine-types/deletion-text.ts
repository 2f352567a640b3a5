/** Renders what a deleted Job has done, and what it has not. Pure. */
import { jobState } from '#cli/machine-types/job-state.ts';
import { countsText, isFinalState } from '#cli/machine-types/plan-counts.ts';
import type { TrackedEntry, Transition } from '#cli/machine-types/read-transitions.ts';
import { countsOf, entriesTable } from '#cli/machine-types/transition-table.ts';

export function deletionText({ job, plan }: Transition, entries: readonly TrackedEntry[], reset: number): string {
  const { name } = job.metadata;
  if (plan === undefined) return textWithoutPlan(job);
  const open = entries.filter(({ note }) => !isFinalState(note.state));
  const left = entries.filter(({ note }) => note.state === 'failed' || note.state === 'skipped');
  return [
    `Job ${name}: ${countsText(countsOf(entries))}.`,
    ...(open.length === 0 ? [] : ['', 'Not done:', entriesTable(open), '', ...adviceLines(open)]),
    ...(left.length === 0 ? [] : ['', 'Failed or skipped:', entriesTable(left), '']),
    ...(reset === 0 ? [] : [`Cleared machineTypeRestartRequired of ${vms(reset)}.`]),
  ].join('\n');
}

/** A suspended or complete Job without a plan had one, which an earlier, interrupted deletion removed. */
function textWithoutPlan(job: Transition['job']): string {
  const { name } = job.metadata;
  return jobState(job) === 'Running' || jobState(job) === 'Failed'
    ? `Job ${name} had no plan yet: nothing was changed.`
    : `Job ${name} has no plan any more: what it changed is unknown.`;
}

function adviceLines(open: readonly TrackedEntry[]): string[] {
  const restarts = open.filter(({ note }) => note.state === 'updated' || note.state === 'restartRequired').length;
  const untouched = open.filter(({ note }) => note.state === 'pending').length;
  const going = open.filter(({ note }) => note.state === 'restarting').length;
  return [
    ...(untouched === 0 ? [] : [`${vms(untouched)} ${untouched === 1 ? 'was' : 'were'} not changed.`]),
    ...(restarts === 0
      ? []
      : [`${vms(restarts)} will get the new type at the next restart; no job waits for it any more.`]),
    // The state is recorded before the restart is requested, so the restart may not have happened.
    ...(going === 0
      ? []
      : [`${vms(going)} ${going === 1 ? 'was' : 'were'} about to restart; restart those that do not come up.`]),
  ];
}

const vms = (count: number) => (count === 1 ? '1 VM' : `${count} VMs`);
