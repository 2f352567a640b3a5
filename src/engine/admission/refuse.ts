/** Builds the 403 of an admission step, with Kubernetes' message. */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { forbidden, type ApiError } from '#kube/api-error.ts';

export function refuse({ resource, name, object }: AdmissionAttributes, why: string): ApiError {
  const { name: own, generateName } = object?.metadata ?? {};
  return forbidden(resource, name || own || generateName || 'Unknown', why);
}
