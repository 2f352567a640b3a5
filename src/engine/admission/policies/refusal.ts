/**
 * Builds the error of a request that a policy refuses, with Kubernetes' message: it reads as forbidden, whatever its
 * reason.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import type { PolicyRefusal } from '#engine/admission/policies/validating-policies.ts';
import { ApiError, forbidden } from '#kube/api-error.ts';

const CODES: Readonly<Record<string, number>> = {
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

export function policyRefusalError({ resource, name }: AdmissionAttributes, refusal: PolicyRefusal): ApiError {
  const { policy, binding, denial } = refusal;
  const bound = binding === undefined ? '' : ` with binding '${binding}'`;
  const why = `ValidatingAdmissionPolicy '${policy}'${bound} denied request: ${denial.message}`;
  const { message, details } = forbidden(resource, name, why);
  const reason = denial.reason ?? 'Invalid';
  return new ApiError(CODES[reason] ?? 422, reason, message, { details: { ...details, causes: [{ message: why }] } });
}
