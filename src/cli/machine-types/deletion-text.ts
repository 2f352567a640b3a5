/** What a Job that is deleted has done, and what it has not. Pure. */
import { countsText, isOver } from '#cli/machine-types/plan-counts.ts';
import type { Followed, Transition } from '#cli/machine-types/read-transitions.ts';
import { countsOf, entriesTable } from '#cli/machine-types/transition-table.ts';

export function deletionText({ job, plan }: Transition, followed: readonly Followed[], reset: number): string {
  const { name } = job.metadata;
  if (plan === undefined) return `Job ${name} had not made its plan yet: nothing was done.`;
  const open = followed.filter(({ note }) => !isOver(note.state));
  const failed = followed.filter(({ note }) => note.state === 'failed');
  return [
    `Job ${name}: ${countsText(countsOf(followed))}.`,
    ...(open.length === 0 ? [] : ['', 'Not done:', entriesTable(open), '', ...advice(open)]),
    ...(failed.length === 0 ? [] : ['', 'Failed:', entriesTable(failed), '']),
    ...(reset === 0 ? [] : [`The mark "restart required" was taken off ${vms(reset)}.`]),
  ].join('\n');
}

function advice(open: readonly Followed[]): string[] {
  const restarts = open.filter(({ note }) => note.state === 'updated' || note.state === 'restartRequired').length;
  const going = open.filter(({ note }) => note.state === 'restarting').length;
  return [
    ...(restarts === 0
      ? []
      : [`${vms(restarts)} will have the new type after a restart, which nobody waits for any more.`]),
    ...(going === 0 ? [] : [`${vms(going)} will come up with the new type by themselves.`]),
  ];
}

const vms = (count: number) => (count === 1 ? '1 VM' : `${count} VMs`);
