import { CREATED_BY_LABEL, NODE_NAME_LABEL, SCHEDULABLE_LABEL } from '#api/names.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

/** Our components trust these labels. */
const RESERVED = [CREATED_BY_LABEL, NODE_NAME_LABEL, SCHEDULABLE_LABEL, 'kubevirt.io/migrationJobUID'];

type Labels = Readonly<Record<string, string>> | undefined;

/** Refuses labels of instances that only our own components may set or change. The message is KubeVirt's. */
export function checkReservedLabels(labels: Labels, old: Labels, field: string, isUpdate = false): FieldError[] {
  const touched = RESERVED.filter((key) => labels?.[key] !== old?.[key]);
  if (touched.length === 0) return [];
  const what = isUpdate ? 'modification' : 'creation';
  const text = `${what} of the following reserved kubevirt.io/ labels on a VMI object is prohibited: ${touched.join(', ')}`;
  return [forbiddenField(field, text)];
}
