/** The audit log of a data directory. */
import { join } from 'node:path';
import { AuditLog } from '#engine/audit/audit-log.ts';
import type { AuditOptions } from '#engine/audit/audit-options.ts';
import type { AuditSink } from '#engine/audit/audit-record.ts';
import { RotatedFile } from '#engine/audit/rotated-file.ts';
import { filterByLevel } from '#engine/audit/audited-requests.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

export interface RunningAudit {
  readonly sink: AuditSink;
  metricsText(): string;
  /** Must be called after the last request. */
  close(): Promise<void>;
}

/** Returns undefined if the audit log is off. The file is opened with the first line. */
export function startAudit(
  dataDir: string,
  { level, maxBytes, maxRotated }: AuditOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): RunningAudit | undefined {
  if (level === 'off') return undefined;
  const file = new RotatedFile({ dir: join(dataDir, 'audit'), maxBytes, maxRotated });
  const audit = new AuditLog({ file, clock, log });
  return {
    sink: filterByLevel(level, audit.take),
    metricsText: () => audit.metricsText(),
    close: () => audit.close(),
  };
}
