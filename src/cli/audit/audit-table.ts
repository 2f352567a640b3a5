/** Renders audit events as table rows. Rows are rendered one by one, so columns can only grow. Pure. */
import type { AuditLine } from '#cli/audit/audit-line.ts';
import { timestamp } from '#lib/clock.ts';

const HEADERS = ['TIME', 'CODE', 'USER', 'VERB', 'RESOURCE', 'OBJECT', 'FROM', 'NOTE'];
const FIRST_WIDTHS = [20, 4, 16, 6, 20, 24, 9, 0];
/** A wider cell shifts the rest of its row instead of widening the column. */
const MAX_WIDTH = 56;

/** Returns a function that renders a row. Its first call also renders the headers. */
export function auditTable(): (line: AuditLine) => string {
  const widths = [...FIRST_WIDTHS];
  let isFirst = true;
  const row = (cells: readonly string[]): string => {
    cells.forEach((cell, i) => (widths[i] = Math.max(widths[i]!, Math.min(cell.length, MAX_WIDTH))));
    return `${cells
      .map((cell, i) => (i === cells.length - 1 ? cell : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd()}\n`;
  };
  return (line) => {
    const heads = isFirst ? row(HEADERS) : '';
    isFirst = false;
    return heads + row(cellsOf(line).map(replaceControlCharacters));
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

/** Names and messages come from clients and may contain characters that control the terminal. */
function replaceControlCharacters(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?');
}
