/** The audit record of a request about which admission had something to note. */
import type { Call } from '#engine/handlers/call.ts';
import type { Log } from '#lib/log.ts';

export interface AuditRecord {
  readonly user: string;
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
  return {
    user: request.user.name,
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
