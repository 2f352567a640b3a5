/** `selfsame audit`: prints audit events from the files of a data directory, without a server. */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAuditLine, type AuditLine } from '#cli/audit/audit-line.ts';
import { parseAuditQuery, type AUDIT_FLAGS } from '#cli/audit/audit-query.ts';
import { readLog } from '#cli/audit/read-log.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import type { FlagValues } from '#lib/command-line/flag.ts';
import { errorMessage } from '#lib/error-message.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import { growingTable } from '#lib/terminal/table.ts';

export interface AuditCall {
  readonly dataDir: string;
  readonly flags: FlagValues<typeof AUDIT_FLAGS>;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly clock: Clock;
  /** Ends the command, also while it follows the log. */
  readonly signal: AbortSignal;
}

/** Prints the events. Throws CommandError. */
export async function runAudit(call: AuditCall): Promise<void> {
  try {
    await printEvents(call);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (cause instanceof CommandError || code === undefined) throw cause;
    throw new CommandError(`Cannot read the audit log: ${errorMessage(cause)}`, { cause });
  }
}

async function printEvents({ dataDir, flags, stdout, stderr, clock, signal }: AuditCall): Promise<void> {
  const { follow, output } = flags;
  const { sinceMs, matches } = parseAuditQuery(flags, clock.now());
  const dir = join(resolve(dataDir), 'audit');
  if (!follow && statSync(dir, { throwIfNoEntry: false }) === undefined) {
    throw new CommandError(`Cannot find an audit log in ${dir}; set --data-dir to the data directory of a server`);
  }
  const row = auditTable();
  let unreadable = 0;
  for await (const text of readLog({ dir, follow, sinceMs, clock, signal })) {
    if (signal.aborted) break;
    const line = parseAuditLine(text);
    if (line === undefined) unreadable++;
    else if (matches(line)) stdout.write(output === 'json' ? `${text}\n` : row(line));
  }
  if (unreadable > 0) stderr.write(`Warning: ${unreadable} lines could not be read\n`);
}

const HEADERS = ['TIME', 'CODE', 'USER', 'VERB', 'RESOURCE', 'OBJECT', 'FROM', 'NOTE'];
const FIRST_WIDTHS = [20, 4, 16, 6, 20, 24, 9, 0];
/** A wider cell shifts the rest of its row instead of widening the column. */
const MAX_WIDTH = 56;

/** Returns a function that renders a row. Its first call also renders the headers. */
function auditTable(): (line: AuditLine) => string {
  const row = growingTable(FIRST_WIDTHS, MAX_WIDTH);
  let isFirst = true;
  return (line) => {
    const heads = isFirst ? `${row(HEADERS)}\n` : '';
    isFirst = false;
    return `${heads}${row(cellsOf(line))}\n`;
  };
}

function cellsOf(line: AuditLine): string[] {
  const { user, impersonatedUser, resource, group, subresource, namespace, name, path, sourceIp } = line;
  const kind = group === '' ? resource : `${resource}.${group}`;
  return [
    timestamp(line.receivedMs),
    String(line.code),
    impersonatedUser === '' ? user || '-' : `${user} as ${impersonatedUser}`,
    line.verb,
    resource === '' ? '-' : subresource === '' ? kind : `${kind}/${subresource}`,
    resource === '' ? path : [namespace, name].filter((part) => part !== '').join('/') || '-',
    sourceIp || '-',
    line.note,
  ];
}
