/** Job: runs pods until a number of them succeeded. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { jobLabels, UID_LABEL } from '#engine/registry/kinds/job/job-labels.ts';
import { checkJob, checkJobUpdate } from '#engine/registry/kinds/job/job-rules.ts';
import { checkJobStatus } from '#engine/registry/kinds/job/job-status-rules.ts';
import { jobSpec, type JobSpec, jobStatus, type JobStatus } from '#engine/registry/kinds/job/job-schema.ts';
import { age, selectorText } from '#engine/registry/kinds/shared/columns.ts';
import { INT32_MAX } from '#engine/registry/kinds/shared/formats.ts';
import { defaultPodSpec } from '#engine/registry/kinds/pod-spec/pod-spec-defaults.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { isTrue } from '#kube/conditions.ts';
import { humanDuration } from '#kube/go/human-duration.ts';
import { isRecord, type KubeObject, type ObjectMeta } from '#kube/meta.ts';
import { type Infer, overrideOptions } from '#kube/schema-dsl.ts';

const job = apiType('batch.v1.Job', 'A job runs pods until a number of them complete successfully.', {
  spec: required(2, overrideOptions(jobSpec, { default: {} }), 'Desired behavior of the job.'),
  status: optional(
    3,
    overrideOptions(jobStatus, { default: {} }),
    'Current status of the job. Populated by the system. Read-only.',
  ),
});

type Job = KubeObject & Infer<typeof job>;

const defined = defineKind({
  group: 'batch',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
  categories: ['all'],
  schema: job,
  columns: [
    { name: 'Status', value: stateOf },
    { name: 'Completions', value: completionsOf },
    { name: 'Duration', value: ({ status }, now) => durationOf(status ?? {}, now) },
    age,
    {
      name: 'Containers',
      priority: 1,
      value: ({ spec }) =>
        containers(spec)
          .map(({ name }) => name)
          .join(','),
    },
    {
      name: 'Images',
      priority: 1,
      value: ({ spec }) =>
        containers(spec)
          .map(({ image }) => image ?? '')
          .join(','),
    },
    { name: 'Selector', priority: 1, value: ({ spec }) => selectorText(spec.selector) },
  ],
  status: true,
  generation: true,
  selectableFields: { 'status.successful': ({ status }) => String(status?.succeeded ?? 0) },
  defaults({ spec }) {
    if (!isRecord(spec)) return;
    defaultCounts(spec);
    if (isRecord(spec.template)) defaultPodSpec(spec.template.spec);
  },
  prepareForCreate({ metadata, spec }) {
    if (!isRecord(spec) || !isRecord(spec.template)) return;
    if (spec.manualSelector !== true) selectOwnPods(metadata, spec);
    labelAsPods(metadata, spec);
  },
  prepareForUpdate({ metadata, spec }) {
    if (isRecord(spec)) labelAsPods(metadata, spec);
  },
  validate: ({ metadata, spec }) => checkJob(metadata, spec),
  validateUpdate: ({ spec, status = {} }, old) => [
    ...checkJobUpdate(spec, old.spec, old.status?.startTime === undefined),
    ...checkJobStatus({ spec, status, old: old.status ?? {} }),
  ],
});

/** For compatibility with versions before garbage collection; kubectl always sets a policy. */
const defaultPropagation = {
  policy: 'Orphan',
  warning:
    'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
} as const;

export const jobs: Resource = { ...defined, strategy: { ...defined.strategy, defaultPropagation } };

const BACKOFF_LIMIT = 6;

/** Sets the default counts: one completion, unless only parallelism is set. Then any success completes the Job. */
function defaultCounts(spec: JobSpec): void {
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? BACKOFF_LIMIT : INT32_MAX;
  spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed';
}

/** Labels the pods with the Job's uid, so that no other Job can adopt them. */
function selectOwnPods({ name = '', uid = '' }: ObjectMeta, spec: JobSpec): void {
  const { template, selector } = spec;
  template.metadata = {
    ...template.metadata,
    labels: { ...jobLabels(name, uid), ...template.metadata?.labels },
  };
  spec.selector = { ...selector, matchLabels: { [UID_LABEL]: uid, ...selector?.matchLabels } };
}

/** Copies the labels of the pod template to a Job without labels. */
function labelAsPods(metadata: ObjectMeta, { template }: JobSpec): void {
  const labels = template?.metadata?.labels;
  if (isRecord(labels) && Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...labels };
}

function containers({ template }: JobSpec) {
  return template.spec?.containers ?? [];
}

function stateOf({ metadata, status }: Job): string {
  const is = (type: string) => isTrue(status?.conditions, type);
  if (is('Complete')) return 'Complete';
  if (is('Failed')) return 'Failed';
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  return ['Suspended', 'FailureTarget'].find(is) ?? 'Running';
}

function completionsOf({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationOf({ startTime, completionTime }: JobStatus, now: number): string {
  if (startTime === undefined) return '';
  return humanDuration((completionTime === undefined ? now : Date.parse(completionTime)) - Date.parse(startTime));
}
