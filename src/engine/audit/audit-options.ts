/** How the audit log is kept, and the flags that say so, for the program's own table of flags. Pure. */

export const AUDIT_LEVELS = ['writes', 'all-writes', 'off'] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

export interface AuditOptions {
  readonly level: AuditLevel;
  /** Of one file. */
  readonly maxBytes: number;
  /** Files that are kept besides the newest. */
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
    help: 'writes leaves out Leases and Events of the system, all-writes does not, off keeps no log',
    fallback: DEFAULT_AUDIT.level,
    parse(text: string): Parsed<AuditLevel> {
      const level = AUDIT_LEVELS.find((known) => known === text);
      return level === undefined ? { mustBe: `one of ${AUDIT_LEVELS.join(', ')}` } : { ok: level };
    },
  },
  auditLogMaxSize: {
    name: 'audit-log-maxsize',
    value: 'MIB',
    help: 'how large a file of the audit log gets',
    fallback: DEFAULT_AUDIT.maxBytes / MEBIBYTE,
    parse: (text: string) => numberIn(text, 1, MAX_SIZE_MIB),
  },
  auditLogMaxBackup: {
    name: 'audit-log-maxbackup',
    value: 'COUNT',
    help: 'how many full files of the audit log are kept',
    fallback: DEFAULT_AUDIT.maxRotated,
    parse: (text: string) => numberIn(text, 1, MAX_FILES),
  },
};

function numberIn(text: string, least: number, most: number): Parsed<number> {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? { ok: value } : { mustBe: `a number from ${least} to ${most}` };
}
