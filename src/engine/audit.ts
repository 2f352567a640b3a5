/** The audit record of a request about which admission had something to note. */
import type { Call } from '#engine/handlers/call.ts';
import type { Log } from '#lib/log.ts';

export interface AuditRecord {
  /** Who really asked. */
  readonly user: string;
  readonly groups: readonly string[];
  /** In whose name, where that is another. */
  readonly impersonatedUser?: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Must not throw. */
export type AuditSink = (record: AuditRecord) => void;

export function auditRecord(
  { request, route }: Call,
  verb: string,
  code: number,
  annotations: ReadonlyMap<string, string>,
): AuditRecord {
  const { group, plural, subresource, namespace, name } = route;
  const { user, impersonator } = request;
  const { name: asking, groups } = impersonator ?? user;
  return {
    user: asking,
    groups,
    ...(impersonator === undefined ? {} : { impersonatedUser: user.name }),
    verb,
    group,
    resource: plural,
    subresource,
    namespace,
    name,
    code,
    annotations: Object.fromEntries(annotations),
  };
}

export function auditToLog(log: Log): AuditSink {
  return (audit) => log.info({ audit }, 'audit');
}
