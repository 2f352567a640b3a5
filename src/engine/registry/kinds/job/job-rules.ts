/** Validates Jobs: consistent counts, and an immutable template. */
import { jobLabels } from '#engine/registry/kinds/job/job-labels.ts';
import { checkPolicies } from '#engine/registry/kinds/job/job-policy-rules.ts';
import { type JobSpec } from '#engine/registry/kinds/job/job-schema.ts';
import { checkImmutableValue, checkName, checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { checkPodTemplate } from '#engine/registry/kinds/pod-spec/pod-spec-rules.ts';
import { type FieldError, invalidValue, requiredValue, tooLong, unsupportedValue } from '#kube/field-error.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';

const INDEXED_PARALLELISM_MAX = 100_000;
const COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
] as const;

export function checkJob(metadata: ObjectMeta, spec: JobSpec): FieldError[] {
  return [
    ...checkOwnSelector(metadata, spec),
    ...COUNTS.flatMap((field) => checkNotNegative(`spec.${field}`, spec[field])),
    ...checkCompletionMode(spec),
    ...checkManagedBy(spec),
    ...checkPolicies(spec),
    ...checkPodTemplate('spec.template', spec.template),
    ...checkRestartPolicy(spec),
    ...checkSelector(spec),
    ...checkHostNames(metadata, spec),
  ];
}

function checkCompletionMode(spec: JobSpec): FieldError[] {
  const { completionMode, completions, parallelism = 1, backoffLimitPerIndex, maxFailedIndexes } = spec;
  const errors: FieldError[] = [];
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    errors.push(requiredValue('spec.backoffLimitPerIndex', 'when maxFailedIndexes is specified'));
  }
  if (completionMode === 'Indexed') {
    if (completions === undefined) {
      errors.push(requiredValue('spec.completions', 'when completion mode is Indexed'));
    }
    if (parallelism > INDEXED_PARALLELISM_MAX) {
      const text = `must be less than or equal to ${INDEXED_PARALLELISM_MAX} when completion mode is Indexed`;
      errors.push(invalidValue('spec.parallelism', parallelism, text));
    }
    errors.push(...checkFailedIndexes(spec));
    return errors;
  }
  for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy'] as const) {
    if (spec[field] === undefined) continue;
    errors.push(invalidValue(`spec.${field}`, spec[field], 'requires indexed completion mode'));
  }
  return errors;
}

const FAILED_INDEXES_MAX = 100_000;
/** Above this number of completions, the lists of indexes in the status must be kept short. */
const MANY_COMPLETIONS = 100_000;
const MAX_WITH_MANY = 10_000;

function checkFailedIndexes(spec: JobSpec): FieldError[] {
  const { completions = 0, parallelism = 1, maxFailedIndexes, backoffLimitPerIndex } = spec;
  const field = 'spec.maxFailedIndexes';
  const errors: FieldError[] = [];
  if (maxFailedIndexes !== undefined && maxFailedIndexes > completions) {
    errors.push(invalidValue(field, maxFailedIndexes, 'must be less than or equal to completions'));
  }
  if (maxFailedIndexes !== undefined && maxFailedIndexes > FAILED_INDEXES_MAX) {
    errors.push(invalidValue(field, maxFailedIndexes, `must be less than or equal to ${FAILED_INDEXES_MAX}`));
  }
  if (completions <= MANY_COMPLETIONS || backoffLimitPerIndex === undefined) return errors;
  const text = `must be less than or equal to ${MAX_WITH_MANY} when completions are above ${MANY_COMPLETIONS} and used with backoff limit per index`;
  if (maxFailedIndexes === undefined) {
    errors.push(requiredValue(field, `must be specified when completions is above ${MANY_COMPLETIONS}`));
  }
  if (parallelism > MAX_WITH_MANY) errors.push(invalidValue('spec.parallelism', parallelism, text));
  if (maxFailedIndexes !== undefined && maxFailedIndexes > MAX_WITH_MANY) {
    errors.push(invalidValue(field, maxFailedIndexes, text));
  }
  return errors;
}

const MANAGER_MAX = 63;

function checkManagedBy({ managedBy }: JobSpec): FieldError[] {
  const field = 'spec.managedBy';
  if (managedBy === undefined) return [];
  if (managedBy === '') return [requiredValue(field)];
  const [, host, path] = /^([^/]+)\/(.+)$/s.exec(managedBy) ?? [];
  if (host === undefined || path === undefined) {
    return [invalidValue(field, managedBy, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const errors = checkName(field, host, 'subdomain');
  if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(path)) {
    const text = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
    errors.push(invalidValue(field, path, text));
  }
  if (managedBy.length > MANAGER_MAX) errors.push(tooLong(field, MANAGER_MAX));
  return errors;
}

/** The pod of an index gets this hostname. Rejecting it here is better than failing for each pod. */
function checkHostNames({ name = '' }: ObjectMeta, { completionMode, completions = 0 }: JobSpec): FieldError[] {
  if (completionMode !== 'Indexed' || completions <= 0) return [];
  const host = `${name}-${completions - 1}`;
  if (nameErrors('label', host).length === 0) return [];
  return [invalidValue('metadata.name', name, `will not able to create pod with invalid DNS label: ${host}`)];
}

/** The default policy of pods, Always, would restart a Job's pods forever. */
function checkRestartPolicy({ template, podFailurePolicy }: JobSpec): FieldError[] {
  const field = 'spec.template.spec.restartPolicy';
  const policy = template.spec?.restartPolicy ?? 'Always';
  if (policy === 'Always') return [requiredValue(field, 'valid values: "OnFailure", "Never"')];
  if (policy !== 'OnFailure' && policy !== 'Never') return [unsupportedValue(field, policy, ['OnFailure', 'Never'])];
  if (podFailurePolicy === undefined || policy === 'Never') return [];
  return [invalidValue(field, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

const LABELS_AT = 'spec.template.metadata.labels';

/** Unless manualSelector is set, the selector must be the generated one, whose labels identify only this Job. */
function checkOwnSelector({ name = '', uid = '' }: ObjectMeta, spec: JobSpec): FieldError[] {
  const { manualSelector, selector, template } = spec;
  if (manualSelector === true || selector === undefined) return [];
  const labels = template.metadata?.labels ?? {};
  const own = jobLabels(name, uid);
  const errors = Object.entries(own).flatMap(([key, value]) => {
    if (labels[key] === value) return [];
    const field = `${LABELS_AT}[${key}]`;
    const text = `must be '${value}'`;
    return [labels[key] === undefined ? requiredValue(field, text) : invalidValue(field, labels, text)];
  });
  if (checkLabelSelector('spec.selector', selector).length > 0) return errors;
  if (matchesLabels(labelRequirementsOf(selector), own)) return errors;
  return [...errors, invalidValue('spec.selector', selector, '`selector` not auto-generated')];
}

function checkSelector({ selector, template }: JobSpec): FieldError[] {
  if (selector === undefined) return [requiredValue('spec.selector')];
  const errors = checkLabelSelector('spec.selector', selector);
  const labels = template.metadata?.labels ?? {};
  if (errors.length > 0 || matchesLabels(labelRequirementsOf(selector), labels)) return errors;
  return [invalidValue(LABELS_AT, labels, '`selector` does not match template `labels`')];
}

const FIXED = [
  'selector',
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
] as const;

export function checkJobUpdate(spec: JobSpec, old: JobSpec, neverStarted: boolean): FieldError[] {
  return [
    ...checkCompletions(spec, old),
    ...FIXED.flatMap((field) => checkImmutableValue(`spec.${field}`, spec[field], old[field])),
    ...checkTemplateUpdate(spec, old, neverStarted),
  ];
}

function checkCompletions(spec: JobSpec, old: JobSpec): FieldError[] {
  const field = 'spec.completions';
  if (spec.completionMode !== 'Indexed') return checkImmutableValue(field, spec.completions, old.completions);
  const changed = spec.completions !== undefined && spec.completions !== old.completions;
  if (!changed || spec.completions === spec.parallelism) return [];
  return [invalidValue(field, spec.completions, 'can only be modified in tandem with spec.parallelism')];
}

/** The placement of a suspended Job that never started may still change. */
function checkTemplateUpdate(spec: JobSpec, old: JobSpec, neverStarted: boolean): FieldError[] {
  const movable = old.suspend === true && neverStarted;
  const next = movable ? withoutPlacement(spec.template) : spec.template;
  const before = movable ? withoutPlacement(old.template) : old.template;
  return checkImmutableValue('spec.template', next, before);
}

function withoutPlacement({ metadata, spec }: JobSpec['template']): unknown {
  return {
    metadata: { ...metadata, labels: undefined, annotations: undefined },
    spec: {
      ...spec,
      affinity: { ...spec?.affinity, nodeAffinity: undefined },
      nodeSelector: undefined,
      tolerations: undefined,
      schedulingGates: undefined,
    },
  };
}
