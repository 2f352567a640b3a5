/** Options of the audit log. Pure. */

export const AUDIT_LEVELS = ['writes', 'all-writes', 'off'] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

export interface AuditOptions {
  readonly level: AuditLevel;
  /** Maximum size of one file. */
  readonly maxBytes: number;
  /** Number of files that are kept besides the current one. */
  readonly maxRotated: number;
}

export const DEFAULT_AUDIT: AuditOptions = { level: 'writes', maxBytes: 64 * 1024 * 1024, maxRotated: 8 };
