/** Validates pods, beyond the rules that templates share: creation, and the few changes that an update may make. */
import { checkQualifiedName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { checkPodSpec } from '#engine/registry/kinds/pod-spec/pod-spec-rules.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records, sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, forbiddenField, invalidValue } from '#kube/field-error.ts';

export function checkPod(spec: EnginePodSpec): FieldError[] {
  const errors = checkPodSpec('spec', spec);
  errors.push(...checkGates(spec));
  for (const sort of ['containers', 'initContainers'] as const) {
    for (const [i, { image = '' }] of (spec[sort] ?? []).entries()) {
      if (image.trim() === image) continue;
      errors.push(invalidValue(`spec.${sort}[${i}].image`, image, 'must not have leading or trailing whitespace'));
    }
  }
  return errors;
}

/** Ephemeral containers are added to a pod that exists; quotas do not count them. */
export function checkNewPod({ ephemeralContainers = [] }: EnginePodSpec): FieldError[] {
  return ephemeralContainers.length === 0
    ? []
    : [forbiddenField('spec.ephemeralContainers', 'cannot be set on create')];
}

const CHANGEABLE = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** Binding and ephemeral containers have subresources of their own, which this does not validate. */
export function checkPodUpdate(spec: EnginePodSpec, old: EnginePodSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const sort of ['containers', 'initContainers'] as const) {
    if ((spec[sort]?.length ?? 0) === (old[sort]?.length ?? 0)) continue;
    return [forbiddenField(`spec.${sort}`, 'pod updates may not add or remove containers')];
  }
  errors.push(...checkDeadline(spec.activeDeadlineSeconds, old.activeDeadlineSeconds));
  if (!onlyAdded(spec.tolerations, old.tolerations)) {
    const text = 'existing toleration can not be modified except its tolerationSeconds';
    errors.push(forbiddenField('spec.tolerations', text));
  }
  errors.push(...checkGatesUpdate(spec.schedulingGates, old.schedulingGates));
  if (!sameValue(fixedPart(spec, old), fixedPart(old, old))) {
    errors.push(forbiddenField('spec', `pod updates may not change fields other than ${CHANGEABLE}`));
  }
  return errors;
}

function checkDeadline(next: number | undefined, old: number | undefined): FieldError[] {
  const field = 'spec.activeDeadlineSeconds';
  if (old === undefined) return [];
  if (next === undefined) return [invalidValue(field, null, 'must not update from a positive integer to nil value')];
  return next > old ? [invalidValue(field, next, 'must be less than or equal to previous value')] : [];
}

/** Returns the immutable fields. The placement of a gated pod may still change. */
function fixedPart(spec: EnginePodSpec, old: EnginePodSpec): unknown {
  const withoutImage = <T extends { image?: string }>(container: T) => ({ ...container, image: undefined });
  const gated = (old.schedulingGates?.length ?? 0) > 0;
  return {
    ...spec,
    containers: records(spec.containers).map(withoutImage),
    initContainers: spec.initContainers?.map(withoutImage),
    activeDeadlineSeconds: undefined,
    tolerations: undefined,
    schedulingGates: undefined,
    ...(gated ? { nodeSelector: undefined, affinity: { ...spec.affinity, nodeAffinity: undefined } } : {}),
  };
}

function onlyAdded(next: EnginePodSpec['tolerations'] = [], old: EnginePodSpec['tolerations'] = []): boolean {
  const known = new Set(records(next).map(tolerationKey));
  return records(old).every((kept) => known.has(tolerationKey(kept)));
}

/** Identifies a toleration, except for its time. */
function tolerationKey({ key, operator, value, effect }: NonNullable<EnginePodSpec['tolerations']>[number]): string {
  return JSON.stringify([key, operator, value, effect]);
}

function checkGates({ schedulingGates = [], nodeName }: EnginePodSpec): FieldError[] {
  const names = schedulingGates.map(({ name }, i) => [`spec.schedulingGates[${i}]`, name] as const);
  const errors = [...names.flatMap(([field, name]) => checkQualifiedName(field, name)), ...checkUnique(names)];
  if (nodeName && names.length > 0) {
    errors.push(forbiddenField('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors;
}

function checkGatesUpdate(
  next: EnginePodSpec['schedulingGates'] = [],
  old: EnginePodSpec['schedulingGates'] = [],
): FieldError[] {
  const before = new Set(old.map(({ name }) => name));
  return next.flatMap(({ name }, i) => {
    const text = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return before.has(name) ? [] : [forbiddenField(`spec.schedulingGates[${i}].name`, text)];
  });
}
