/** Renders audit events as table rows. Rows are rendered one by one, so columns can only grow. Pure. */
import type { AuditLine } from '#cli/audit/audit-line.ts';
import { timestamp } from '#lib/clock.ts';
import { growingTable } from '#lib/terminal/table.ts';

const HEADERS = ['TIME', 'CODE', 'USER', 'VERB', 'RESOURCE', 'OBJECT', 'FROM', 'NOTE'];
const FIRST_WIDTHS = [20, 4, 16, 6, 20, 24, 9, 0];
/** A wider cell shifts the rest of its row instead of widening the column. */
const MAX_WIDTH = 56;

/** Returns a function that renders a row. Its first call also renders the headers. */
export function auditTable(): (line: AuditLine) => string {
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
