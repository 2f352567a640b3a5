/** Which requests are worth a line. Pure. */
import { ANONYMOUS_USER } from '#engine/auth/groups.ts';
import { SERVICE_ACCOUNTS_GROUP } from '#engine/auth/service-accounts/user.ts';
import type { AuditLevel } from '#engine/audit/audit-options.ts';
import type { AuditRecord, AuditSink } from '#engine/audit/audit-record.ts';

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head', 'options']);
const REFUSED = 400;
const CONNECTED = 101;

/**
 * Whatever was refused, and whatever may have changed something. A connection that was handed over counts: who has the
 * console of a machine can change all of it, whatever the method was.
 */
export function isAudited(verb: string, code: number, isQuestion: boolean): boolean {
  return code >= REFUSED || code === CONNECTED || !(isQuestion || READS.has(verb));
}

/** `writes` leaves the chatter out. */
export function atLevel(level: Exclude<AuditLevel, 'off'>, sink: AuditSink): AuditSink {
  if (level === 'all-writes') return sink;
  return (record) => {
    if (!isChatter(record)) sink(record);
  };
}

const CHATTER: ReadonlySet<string> = new Set(['leases.coordination.k8s.io', 'events.', 'events.events.k8s.io']);

/** Leases and Events that parts of the system write all day long. */
export function isChatter(record: AuditRecord): boolean {
  const { route, code, impersonated } = record;
  if (route.type !== 'resource' || code >= REFUSED || impersonated !== undefined) return false;
  return CHATTER.has(`${route.plural}.${route.group}`) && isSystem(record);
}

const SYSTEM_ACCOUNTS = `${SERVICE_ACCOUNTS_GROUP}:kube-system`;

function isSystem({ isLocal, user: { name, groups } }: AuditRecord): boolean {
  if (isLocal) return true;
  // The names of accounts begin like those of system users, and anybody may make accounts.
  if (groups.includes(SERVICE_ACCOUNTS_GROUP)) return groups.includes(SYSTEM_ACCOUNTS);
  return name.startsWith('system:') && name !== ANONYMOUS_USER.name;
}
