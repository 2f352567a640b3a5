/** A record of a successful create, with overrides. */
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { parseApiRoute } from '#engine/request/route.ts';

export const RECEIVED_MS = Date.UTC(2026, 0, 31, 12, 0, 0, 7);

export function aRecord({
  path = '/api/v1/namespaces/default/configmaps',
  ...rest
}: Partial<AuditRecord> = {}): AuditRecord {
  return {
    id: 'id-1',
    receivedMs: RECEIVED_MS,
    tookMs: 1.25,
    path,
    query: new URLSearchParams(),
    verb: 'create',
    user: { name: 'alice', groups: ['system:authenticated'] },
    impersonated: undefined,
    isLocal: false,
    sourceIp: '192.0.2.7',
    userAgent: 'kubectl/v1.32.0',
    route: parseApiRoute(path),
    name: 'one',
    code: 201,
    isOpen: false,
    decision: { allowed: true, reason: 'RBAC: allowed by ClusterRoleBinding "a"' },
    error: undefined,
    warnings: [],
    annotations: {},
    ...rest,
  };
}
