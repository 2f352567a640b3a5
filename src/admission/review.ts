/** AdmissionReview of admission.k8s.io/v1 as values, and the answers that we give. Pure. */
import type { FieldError } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: Operation;
  readonly user: string;
  /** As asked for; its kind has not been checked when it may still be changed. */
  readonly object?: KubeObject;
  readonly oldObject?: KubeObject;
}

export type PatchOperation =
  | { readonly op: 'add'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export interface Answer {
  /** Why it may not be done at all, whatever the object says. */
  readonly denied?: string;
  readonly errors?: readonly FieldError[];
  readonly patch?: readonly PatchOperation[];
  readonly warnings?: readonly string[];
}

export interface AdmissionReview {
  readonly apiVersion: 'admission.k8s.io/v1';
  readonly kind: 'AdmissionReview';
  readonly response: Readonly<Record<string, unknown>>;
}

/** undefined where it is no review. */
export function readRequest(review: unknown): AdmissionRequest | undefined {
  const request = isRecord(review) ? review['request'] : undefined;
  if (!isRecord(request)) return undefined;
  const { uid, operation, userInfo, object, oldObject } = request;
  if (typeof uid !== 'string' || !isOperation(operation)) return undefined;
  const user = isRecord(userInfo) && typeof userInfo['username'] === 'string' ? userInfo['username'] : '';
  return { uid, operation, user, object: asObject(object), oldObject: asObject(oldObject) };
}

function isOperation(value: unknown): value is Operation {
  return value === 'CREATE' || value === 'UPDATE' || value === 'DELETE' || value === 'CONNECT';
}

function asObject(value: unknown): KubeObject | undefined {
  return isRecord(value) && isRecord(value['metadata']) ? (value as KubeObject) : undefined;
}

export function reviewOf(uid: string, { denied, errors = [], patch = [], warnings = [] }: Answer): AdmissionReview {
  const status = denied === undefined ? refusal(errors) : denial(denied);
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: status === undefined,
      ...(status === undefined ? {} : { status }),
      ...(patch.length === 0 ? {} : { patchType: 'JSONPatch', patch: encode(patch) }),
      ...(warnings.length === 0 ? {} : { warnings }),
    },
  };
}

function denial(message: string) {
  return { status: 'Failure', code: 403, reason: 'Forbidden', message };
}

/** The texts of all, as KubeVirt joins them; the causes say the same to programs. */
function refusal(errors: readonly FieldError[]) {
  if (errors.length === 0) return undefined;
  return {
    status: 'Failure',
    code: 422,
    reason: 'Invalid',
    message: errors.map(({ field, message }) => `${field}: ${message}`).join(', '),
    details: { causes: errors.map(({ reason, message, field }) => ({ reason, message, field })) },
  };
}

const encode = (patch: readonly PatchOperation[]) => Buffer.from(JSON.stringify(patch)).toString('base64');
