/**
 * The record of an audited request. Holds only references while the request is answered; the line is formatted later
 * (format-event.ts). Contains no part of a request or response body.
 */
import type { AuthorizationDecision } from '#engine/auth/authorize.ts';
import type { ApiRequest, ApiResponse, UserInfo } from '#engine/request/request.ts';
import type { ApiRoute } from '#engine/request/route.ts';
import type { ApiError } from '#kube/api-error.ts';

/** The notes of a write. */
interface TrailNotes {
  /** The name of a created object, which is not in the path; '' while it is unknown. */
  readonly name: string;
  readonly warnings: readonly string[] | undefined;
  readonly annotations: ReadonlyMap<string, string> | undefined;
}

/** The information that a request collects on its way through the API. */
export interface RequestTrail {
  /** The decision of the authorizer; undefined if the request was refused before. */
  decision: AuthorizationDecision | undefined;
  /** Set for writes. */
  notes: TrailNotes | undefined;
  /** The error that refused the request. */
  error: ApiError | undefined;
  /** True if the request is a review: a create that stores nothing. */
  isReview: boolean;
}

export interface AuditRecord {
  readonly id: string | undefined;
  readonly receivedMs: number;
  readonly tookMs: number;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly verb: string;
  /** The real user. */
  readonly user: UserInfo;
  /** The impersonated user, if any. */
  readonly impersonated: UserInfo | undefined;
  /** True if a component of this process sent the request. */
  readonly isLocal: boolean;
  readonly sourceIp: string | undefined;
  readonly userAgent: string;
  readonly route: ApiRoute;
  /** The name of the object, even if it is not in the path. */
  readonly name: string;
  readonly code: number;
  /** True if the response continues: a stream, or an upgraded connection. */
  readonly isOpen: boolean;
  readonly decision: AuthorizationDecision | undefined;
  readonly error: ApiError | undefined;
  readonly warnings: readonly string[];
  /** Annotations of admission and token requests. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Must neither throw nor wait. */
export type AuditSink = (record: AuditRecord) => void;

const NO_WARNINGS: readonly string[] = [];
const NO_ANNOTATIONS: Readonly<Record<string, string>> = {};

interface AuditedExchange {
  /** The request as received. */
  readonly received: ApiRequest;
  /** The request as served, possibly as an impersonated user. */
  readonly request: ApiRequest;
  readonly route: ApiRoute;
  readonly verb: string;
  readonly response: ApiResponse;
  readonly trail: RequestTrail;
  readonly receivedMs: number;
  readonly tookMs: number;
}

export function auditRecord({
  received,
  request,
  route,
  verb,
  response,
  trail,
  ...times
}: AuditedExchange): AuditRecord {
  const { notes, error, decision } = trail;
  const known = route.type === 'resource' ? route.name : '';
  const noted = notes?.annotations;
  return {
    id: received.auditId,
    receivedMs: times.receivedMs,
    tookMs: times.tookMs,
    path: received.path,
    query: received.query,
    verb,
    user: received.user,
    impersonated: request === received ? undefined : request.user,
    isLocal: received.header === undefined,
    sourceIp: received.sourceIp,
    userAgent: received.userAgent,
    route,
    name: known || notes?.name || (error?.details?.name ?? ''),
    code: response.status,
    isOpen: !('body' in response),
    decision,
    error,
    warnings: response.warnings ?? NO_WARNINGS,
    annotations: noted === undefined ? NO_ANNOTATIONS : Object.fromEntries(noted),
  };
}
