/** The audit log of a data directory. */
import { join } from 'node:path';
import { AuditLog } from '#engine/audit/audit-log.ts';
import type { AuditOptions } from '#engine/audit/audit-options.ts';
import type { AuditSink } from '#engine/audit/audit-record.ts';
import { RotatedFile } from '#engine/audit/rotated-file.ts';
import { filterByLevel } from '#engine/audit/audited-requests.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';

interface RunningAudit {
  readonly sink: AuditSink;
  /** Must be called after the last request. */
  close(): Promise<void>;
}

/** Returns undefined if the audit log is off. The file is opened with the first line. */
export function startAudit(
  dataDir: string,
  { level, maxBytes, maxRotated }: AuditOptions,
  { clock, log, metrics }: { readonly clock: Clock; readonly log: Log; readonly metrics: MetricRegistry },
): RunningAudit | undefined {
  if (level === 'off') return undefined;
  const file = new RotatedFile({ dir: join(dataDir, 'audit'), maxBytes, maxRotated });
  const audit = new AuditLog({ file, clock, log, metrics });
  return {
    sink: filterByLevel(level, audit.take),
    close: () => audit.close(),
  };
}
