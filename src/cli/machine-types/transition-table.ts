/** How Jobs and the VMs in their plans are shown. Pure. */
import type { Job } from '#api/machine-types/kinds.ts';
import { ENV_OF_OPTIONS } from '#api/machine-types/options.ts';
import { failureOf, jobState, logsText } from '#cli/machine-types/job-state.ts';
import { countOver, countStates, countsText, stateText } from '#cli/machine-types/plan-counts.ts';
import type { Followed, Transition } from '#cli/machine-types/read-transitions.ts';
import { alignedTable } from '#cli/output-format.ts';
import { humanDuration } from '#kube/human-duration.ts';
import { isRecord } from '#kube/meta.ts';

export interface ListedTransition {
  readonly transition: Transition;
  readonly followed: readonly Followed[];
}

export function transitionsText(listed: readonly ListedTransition[], nowMs: number): string {
  if (listed.length === 0) return 'No jobs found.';
  const jobs = alignedTable([
    ['JOB', 'GLOB', 'STATUS', 'VMS', 'OVER', 'AGE'],
    ...listed.map(({ transition: { job, plan }, followed }) => [
      job.metadata.name,
      globOf(job),
      jobState(job),
      plan === undefined ? '<none>' : String(plan.length),
      String(countOver(countsOf(followed))),
      humanDuration(nowMs - Date.parse(job.metadata.creationTimestamp)),
    ]),
  ]);
  return [jobs, ...listed.flatMap(detailsText)].join('\n\n');
}

function detailsText({ transition: { job, plan }, followed }: ListedTransition): string[] {
  const { name } = job.metadata;
  if (plan === undefined) {
    if (jobState(job) !== 'Failed') return [`${name}: it has no plan yet; nothing was changed. ${logsText(job)}`];
    return [`${name}: it failed before it had a plan; nothing was changed: ${failureOf(job)}. ${logsText(job)}`];
  }
  if (plan.length === 0) return [`${name}: no VM needs a change.`];
  return [`${name}: ${countsText(countsOf(followed))}`, entriesTable(followed)];
}

export function entriesTable(followed: readonly Followed[]): string {
  return alignedTable([
    ['NAMESPACE', 'NAME', 'FROM', 'TO', 'STATE', 'REASON'],
    ...followed.map(({ entry, note }) => [
      entry.namespace,
      entry.name,
      entry.from || '<default>',
      entry.to ?? '<resolved at the start>',
      stateText(note.state),
      note.reason ?? '-',
    ]),
  ]);
}

export const countsOf = (followed: readonly Followed[]) => countStates(followed.map(({ note }) => note.state));

/** For programs. */
export function transitionsAsValue(listed: readonly ListedTransition[]): unknown {
  return listed.map(({ transition: { job, plan }, followed }) => ({
    job: job.metadata.name,
    glob: globOf(job),
    status: jobState(job),
    planned: plan !== undefined,
    virtualMachines: followed.map(({ entry, note }) => ({ ...entry, ...note })),
  }));
}

/** What the Job was asked for; people may have made Jobs of their own that say it in other ways. */
function globOf({ spec }: Job): string {
  const containers = spec?.template?.spec?.['containers'];
  const [container] = Array.isArray(containers) ? (containers as unknown[]) : [];
  const env = isRecord(container) && Array.isArray(container['env']) ? (container['env'] as unknown[]) : [];
  const variable = env.filter(isRecord).find(({ name }) => name === ENV_OF_OPTIONS.glob);
  return typeof variable?.['value'] === 'string' ? variable['value'] : '<unknown>';
}
