/**
 * What is kept of a request that is worth telling of. Only references are taken while the request is answered; the line
 * is made of them later (format-event.ts), and nothing of any body is among them.
 */
import type { Decision } from '#engine/auth/authorize.ts';
import type { AuditNotes } from '#engine/audit/audit-notes.ts';
import type { ApiRequest, ApiResponse, UserInfo } from '#engine/request.ts';
import type { Route } from '#engine/route.ts';
import type { ApiError } from '#kube/api-error.ts';

/** What a request leaves behind on its way through the API. */
export interface Trail {
  /** Of the authorizer; undefined where the request was refused before it was asked. */
  decision: Decision | undefined;
  notes: AuditNotes | undefined;
  /** Why it was refused. */
  error: ApiError | undefined;
  /** A review: created, as it were, and nothing of it stored. */
  isQuestion: boolean;
}

export interface AuditRecord {
  readonly id: string | undefined;
  readonly receivedMs: number;
  readonly tookMs: number;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly verb: string;
  /** Who really asked. */
  readonly user: UserInfo;
  /** In whose name, where that is another. */
  readonly impersonated: UserInfo | undefined;
  /** Asked by a part of this process. */
  readonly isLocal: boolean;
  readonly sourceIp: string | undefined;
  readonly userAgent: string;
  readonly route: Route;
  /** Of the object, also of one that had none on its path. */
  readonly name: string;
  readonly code: number;
  /** The answer goes on: a stream, or a connection that was handed over. */
  readonly isOpen: boolean;
  readonly decision: Decision | undefined;
  readonly error: ApiError | undefined;
  readonly warnings: readonly string[];
  /** What admission and token requests noted. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Must neither throw nor wait. */
export type AuditSink = (record: AuditRecord) => void;

const NO_WARNINGS: readonly string[] = [];
const NO_ANNOTATIONS: Readonly<Record<string, string>> = {};

export interface Answered {
  /** As it came. */
  readonly asked: ApiRequest;
  /** As it was served: in the name of somebody else, perhaps. */
  readonly request: ApiRequest;
  readonly route: Route;
  readonly verb: string;
  readonly response: ApiResponse;
  readonly trail: Trail;
  readonly receivedMs: number;
  readonly tookMs: number;
}

export function auditRecord({ asked, request, route, verb, response, trail, ...times }: Answered): AuditRecord {
  const { notes, error, decision } = trail;
  const known = route.type === 'resource' ? route.name : '';
  const noted = notes?.annotations;
  return {
    id: asked.auditId,
    receivedMs: times.receivedMs,
    tookMs: times.tookMs,
    path: asked.path,
    query: asked.query,
    verb,
    user: asked.user,
    impersonated: request === asked ? undefined : request.user,
    isLocal: asked.header === undefined,
    sourceIp: asked.sourceIp,
    userAgent: asked.userAgent,
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
