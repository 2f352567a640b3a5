/** Builds the audit record of a request with invalid credentials, which has no user. */
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import type { UnauthenticatedRequest, UserInfo } from '#engine/request/request.ts';
import { parseApiRoute, verbOf } from '#engine/request/route.ts';

const NO_USER: UserInfo = { name: '', groups: [] };

export function unauthenticatedRecord(request: UnauthenticatedRequest, receivedMs: number): AuditRecord {
  const { method, url, userAgent, sourceIp, auditId, error } = request;
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const route = parseApiRoute(path);
  const verb = route.type === 'path' ? undefined : verbOf(method, route, query);
  return {
    id: auditId,
    receivedMs,
    tookMs: 0,
    path,
    query,
    verb: verb ?? method.toLowerCase(),
    user: NO_USER,
    impersonated: undefined,
    isLocal: false,
    sourceIp,
    userAgent,
    route,
    name: route.type === 'resource' ? route.name : '',
    code: error.code,
    isOpen: false,
    decision: undefined,
    error,
    warnings: [],
    annotations: {},
  };
}
