/** Options of the audit log and their flags, for the program's table of flags. Pure. */

const AUDIT_LEVELS = ['writes', 'all-writes', 'off'] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

export interface AuditOptions {
  readonly level: AuditLevel;
  /** Maximum size of one file. */
  readonly maxBytes: number;
  /** Number of files that are kept besides the current one. */
  readonly maxRotated: number;
}

export const DEFAULT_AUDIT: AuditOptions = { level: 'writes', maxBytes: 64 * 1024 * 1024, maxRotated: 8 };

type Parsed<T> = { ok: T } | { mustBe: string };

const MEBIBYTE = 1024 * 1024;
const MAX_SIZE_MIB = 16 * 1024;
const MAX_FILES = 1000;

export const auditFlags = {
  audit: {
    name: 'audit',
    value: 'WHAT',
    help: 'requests to log: writes (without Leases and Events of the system), all-writes or off',
    fallback: DEFAULT_AUDIT.level,
    parse(text: string): Parsed<AuditLevel> {
      const level = AUDIT_LEVELS.find((known) => known === text);
      return level === undefined ? { mustBe: `one of ${AUDIT_LEVELS.join(', ')}` } : { ok: level };
    },
  },
  auditLogMaxSize: {
    name: 'audit-log-maxsize',
    value: 'MIB',
    help: 'maximum size of an audit log file',
    fallback: DEFAULT_AUDIT.maxBytes / MEBIBYTE,
    parse: (text: string) => numberIn(text, 1, MAX_SIZE_MIB),
  },
  auditLogMaxBackup: {
    name: 'audit-log-maxbackup',
    value: 'COUNT',
    help: 'number of rotated audit log files to keep',
    fallback: DEFAULT_AUDIT.maxRotated,
    parse: (text: string) => numberIn(text, 1, MAX_FILES),
  },
};

function numberIn(text: string, least: number, most: number): Parsed<number> {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? { ok: value } : { mustBe: `a number from ${least} to ${most}` };
}
