/** Renders Jobs and the VMs in their plans. Pure. */
import type { TransitionJob } from '#api/machine-types/kinds.ts';
import { ENV_OF_OPTIONS } from '#api/machine-types/options.ts';
import { jobFailureText, jobState, logsText } from '#cli/machine-types/job-state.ts';
import { countFinal, countStates, countsText, stateText } from '#cli/machine-types/plan-counts.ts';
import type { TrackedEntry, Transition } from '#cli/machine-types/read-transitions.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { humanDuration } from '#kube/go/human-duration.ts';
import { isRecord } from '#kube/meta.ts';

interface ListedTransition {
  readonly transition: Transition;
  readonly entries: readonly TrackedEntry[];
}

export function transitionsText(listed: readonly ListedTransition[], nowMs: number): string {
  if (listed.length === 0) return 'No jobs found.';
  const jobs = alignedTable([
    ['JOB', 'GLOB', 'STATUS', 'VMS', 'OVER', 'AGE'],
    ...listed.map(({ transition: { job, plan }, entries }) => [
      job.metadata.name,
      globOf(job),
      jobState(job),
      plan === undefined ? '<none>' : String(plan.length),
      String(countFinal(countsOf(entries))),
      humanDuration(nowMs - Date.parse(job.metadata.creationTimestamp)),
    ]),
  ]);
  return [jobs, ...listed.flatMap(detailsText)].join('\n\n');
}

function detailsText({ transition: { job, plan }, entries }: ListedTransition): string[] {
  const { name } = job.metadata;
  if (plan === undefined) {
    if (jobState(job) !== 'Failed') return [`${name}: it has no plan yet; nothing was changed. ${logsText(job)}`];
    return [`${name}: it failed before it had a plan; nothing was changed: ${jobFailureText(job)}. ${logsText(job)}`];
  }
  if (plan.length === 0) return [`${name}: no VM needs a change.`];
  return [`${name}: ${countsText(countsOf(entries))}`, entriesTable(entries)];
}

export function entriesTable(entries: readonly TrackedEntry[]): string {
  return alignedTable([
    ['NAMESPACE', 'NAME', 'FROM', 'TO', 'STATE', 'REASON'],
    ...entries.map(({ entry, note }) => [
      entry.namespace,
      entry.name,
      entry.from || '<default>',
      entry.to ?? '<resolved at the start>',
      stateText(note.state),
      note.reason ?? '-',
    ]),
  ]);
}

export const countsOf = (entries: readonly TrackedEntry[]) => countStates(entries.map(({ note }) => note.state));

/** Returns the value for JSON and YAML output. */
export function transitionsAsValue(listed: readonly ListedTransition[]): unknown {
  return listed.map(({ transition: { job, plan }, entries }) => ({
    job: job.metadata.name,
    glob: globOf(job),
    status: jobState(job),
    planned: plan !== undefined,
    virtualMachines: entries.map(({ entry, note }) => ({ ...entry, ...note })),
  }));
}

/** Returns the glob of a Job. Jobs that users created themselves may set it in another way. */
function globOf({ spec }: TransitionJob): string {
  const containers = spec?.template?.spec?.['containers'];
  const [container] = Array.isArray(containers) ? (containers as unknown[]) : [];
  const env = isRecord(container) && Array.isArray(container['env']) ? (container['env'] as unknown[]) : [];
  const variable = env.filter(isRecord).find(({ name }) => name === ENV_OF_OPTIONS.glob);
  return typeof variable?.['value'] === 'string' ? variable['value'] : '<unknown>';
}
