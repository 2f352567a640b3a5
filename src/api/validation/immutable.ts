import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

/** A wish that is being fulfilled cannot become another one. In KubeVirt's words, to the letter. */
export function checkImmutable(spec: unknown, old: unknown): FieldError[] {
  return deepEqual(spec, old) ? [] : [forbiddenField('spec', 'spec in immutable after creation')];
}
