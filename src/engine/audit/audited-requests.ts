/** Decides which requests are audited. Pure. */
import { ANONYMOUS_USER } from '#engine/auth/groups.ts';
import { SERVICE_ACCOUNTS_GROUP } from '#engine/auth/service-accounts/user.ts';
import type { AuditLevel } from '#engine/audit/audit-options.ts';
import type { AuditRecord, AuditSink } from '#engine/audit/audit-record.ts';

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head', 'options']);
const REFUSED = 400;
const CONNECTED = 101;

/**
 * Reports whether a request is audited: refused requests and potential changes. Upgraded connections count regardless
 * of the method: the console of a machine can change everything.
 */
export function isAudited(verb: string, code: number, isReview: boolean): boolean {
  return code >= REFUSED || code === CONNECTED || !(isReview || READS.has(verb));
}

/** Returns a sink that drops routine system traffic at level `writes`. */
export function filterByLevel(level: Exclude<AuditLevel, 'off'>, sink: AuditSink): AuditSink {
  if (level === 'all-writes') return sink;
  return (record) => {
    if (!isRoutineSystemTraffic(record)) sink(record);
  };
}

const ROUTINE_RESOURCES: ReadonlySet<string> = new Set([
  'leases.coordination.k8s.io',
  'events.',
  'events.events.k8s.io',
]);

/** Reports whether a record is a Lease or Event that system components write continuously. */
export function isRoutineSystemTraffic(record: AuditRecord): boolean {
  const { route, code, impersonated } = record;
  if (route.type !== 'resource' || code >= REFUSED || impersonated !== undefined) return false;
  return ROUTINE_RESOURCES.has(`${route.plural}.${route.group}`) && isSystem(record);
}

const SYSTEM_ACCOUNTS = `${SERVICE_ACCOUNTS_GROUP}:kube-system`;

function isSystem({ isLocal, user: { name, groups } }: AuditRecord): boolean {
  if (isLocal) return true;
  // Service account names have the prefix of system users, and any user may create accounts.
  if (groups.includes(SERVICE_ACCOUNTS_GROUP)) return groups.includes(SYSTEM_ACCOUNTS);
  return name.startsWith('system:') && name !== ANONYMOUS_USER.name;
}
