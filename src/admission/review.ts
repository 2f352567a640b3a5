/** Parses AdmissionReview requests of admission.k8s.io/v1 and builds the responses. Pure. */
import type { FieldError } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

type ReviewOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

export interface ReviewRequest {
  readonly uid: string;
  readonly operation: ReviewOperation;
  readonly user: string;
  /** '' if the kind is not namespaced. */
  readonly namespace: string;
  /** '' if the server has yet to generate the name. */
  readonly name: string;
  readonly dryRun: boolean;
  /** True for a PUT, which sends the whole object; false for patches and server-side applies. */
  readonly isReplace: boolean;
  /** The object in the request. In mutating webhooks it has not been validated yet. */
  readonly object?: KubeObject;
  readonly oldObject?: KubeObject;
}

export type PatchOperation =
  | { readonly op: 'add'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export interface AdmissionDecision {
  /** The request is refused with 403 and this message. */
  readonly forbidden?: string;
  /** The request is refused with 400 and this message, because of the state of other objects. */
  readonly badRequest?: string;
  /** The request is refused with 429 and this message: the client should retry. */
  readonly tooManyRequests?: string;
  readonly errors?: readonly FieldError[];
  readonly patch?: readonly PatchOperation[];
  readonly warnings?: readonly string[];
}

export interface ReviewResponse {
  readonly apiVersion: 'admission.k8s.io/v1';
  readonly kind: 'AdmissionReview';
  readonly response: Readonly<Record<string, unknown>>;
}

/** Returns undefined if the value is not a review. */
export function parseReview(review: unknown): ReviewRequest | undefined {
  const request = isRecord(review) ? review['request'] : undefined;
  if (!isRecord(request)) return undefined;
  const { uid, operation, userInfo, options, object, oldObject } = request;
  if (typeof uid !== 'string' || !isOperation(operation)) return undefined;
  const user = isRecord(userInfo) ? text(userInfo['username']) : '';
  const [namespace, name] = [text(request['namespace']), text(request['name'])];
  return {
    ...{ uid, operation, user, namespace, name },
    dryRun: request['dryRun'] === true,
    isReplace: operation === 'UPDATE' && isRecord(options) && options['kind'] === 'UpdateOptions',
    object: asObject(object),
    oldObject: asObject(oldObject),
  };
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');

function isOperation(value: unknown): value is ReviewOperation {
  return value === 'CREATE' || value === 'UPDATE' || value === 'DELETE' || value === 'CONNECT';
}

function asObject(value: unknown): KubeObject | undefined {
  return isRecord(value) && isRecord(value['metadata']) ? (value as KubeObject) : undefined;
}

export function buildReviewResponse(uid: string, answer: AdmissionDecision): ReviewResponse {
  const { errors = [], patch = [], warnings = [] } = answer;
  const status = refusalStatus(answer) ?? invalidStatus(errors);
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

function refusalStatus({ forbidden, badRequest, tooManyRequests }: AdmissionDecision) {
  const failure = (code: number, reason: string, message: string) => ({ status: 'Failure', code, reason, message });
  if (forbidden !== undefined) return failure(403, 'Forbidden', forbidden);
  if (badRequest !== undefined) return failure(400, 'BadRequest', badRequest);
  return tooManyRequests === undefined ? undefined : failure(429, 'TooManyRequests', tooManyRequests);
}

/** Joins all messages as KubeVirt does; the causes have the same content for programs. */
function invalidStatus(errors: readonly FieldError[]) {
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
