import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

/** Refuses changes of the spec. The message, with its spelling, is KubeVirt's. */
export function checkImmutableSpec(spec: unknown, old: unknown): FieldError[] {
  return deepEqual(spec, old) ? [] : [forbiddenField('spec', 'spec in immutable after creation')];
}
