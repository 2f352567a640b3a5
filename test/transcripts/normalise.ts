/**
 * Makes the outputs of different runs comparable: values that vary become placeholders, columns stay aligned. Pure.
 *
 *   <uid>  <time>  <rv> resource version
 *   <age> in the columns AGE, DURATION, LEARNED, CREATIONTIME, RESTORETIME, LAST SEEN and FIRST SEEN
 *   <suffix> of names generated from a prefix that begins with "gen-", of launcher pods, token volumes and events
 *   <mac> that we generated: one that does not begin with 02:00:00
 *   <token>  <bytes> of generated data  <file> that kubectl made
 *   <server> address  <version> of kubectl, of Selfsame and of Node  <platform>
 *
 * Spaces at the ends of lines are removed, because tables pad with them and editors remove them; so are colours.
 */
const RULES: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uid>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, '<time>'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, '<time>'],
  [/^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+):\d+\]/gm, '<time> $1]'],
  [/("?resourceVersion\\?"?: ?\\?"?)\d+/g, '$1<rv>'],
  [/^(\s*Resource Version: +)\d+/gm, '$1<rv>'],
  [
    /\b((?:gen-(?:[a-z]+-)*|virt-launcher-(?:[a-z]+-)+|kube-api-access-))[bcdfghjklmnpqrstvwxz2456789]{5}\b/g,
    '$1<suffix>',
  ],
  [/(?<=[a-z\d>]\.)(?=[a-z]*\d)[a-z\d]{16}\b/g, '<suffix>'],
  [/\b02:(?!00:00:)(?:[\da-f]{2}:){4}[\da-f]{2}\b/g, '<mac>'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>'],
  [/^(ca\.crt: +)\d+ bytes/gm, '$1<bytes> bytes'],
  [/^(Duration: +)(?:\d+[hms])+$/gm, '$1<age>'],
  [/\b127\.0\.0\.1:\d+\b/g, '<server>'],
  [/^(Client Version: version\.Info|Server Version: version\.Info(?=\{GitVersion))\{.*\}/gm, '$1{<version>}'],
  [/^((?:Client|Kustomize) Version: )v\d\S*/gm, '$1<version>'],
  [/\+selfsame\.[\w.-]+/g, '+selfsame.<version>'],
  [/("?goVersion"?: ?)"[^"]*"/gi, '$1"<version>"'],
  [/("?platform"?: ?)"[^"]*"/gi, '$1"<platform>"'],
  [/[^\s"]*\/kubectl-edit-\w+\.(?:yaml|json)/g, '<file>'],
];

const COLOUR = /\u001b\[[\d;]*m/g;

/** Replaces ages first, while every cell is still below its header. */
export function normalise(output: string): string {
  const ageless = replaceAges(output.replace(COLOUR, '').split('\n')).join('\n');
  return RULES.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), ageless)
    .replace(/[^\S\n]+$/gm, '')
    .trimEnd();
}

interface AgeColumn {
  readonly start: number;
  readonly name: string;
  /** The start of the next column; undefined for the last column. */
  readonly end: number | undefined;
}

const PLACEHOLDER = '<age>';
const AGE = /^(?:\d+[ydhms])+$/;
const AGE_HEADER = /(?<=^| {2,})(AGE|Age|DURATION|LEARNED|CREATIONTIME|RESTORETIME|LAST SEEN|FIRST SEEN)(?: {2,}|$)/g;
/** A row of a table whose header is elsewhere: separated by at least three spaces, and not "Key:   value". */
const LOOSE_ROW = /^([^:]*[^:\s] {3,})(?:\d+[ydhms])+$/;

function replaceAges(lines: readonly string[]): string[] {
  let columns: AgeColumn[] = [];
  return lines.map((line) => {
    if (isHeader(line)) {
      columns = ageColumns(line);
      return columns.reduceRight((result, column) => replaceCell(result, column, column.name), line);
    }
    if (line.trim() === '') columns = [];
    const aligned = columns.reduceRight((result, column) => replaceAge(result, column), line);
    return aligned.replace(LOOSE_ROW, `$1${PLACEHOLDER}`);
  });
}

function isHeader(line: string): boolean {
  return /^[A-Z][A-Z0-9 ()%-]*$/.test(line.trim()) || /^\s+Type\s+Reason\s+Age\s/.test(line);
}

function ageColumns(header: string): AgeColumn[] {
  return [...header.matchAll(AGE_HEADER)].map(({ index, 0: match, 1: name = '' }) => {
    const end = index + match.length;
    return { start: index, name, end: end < header.length ? end : undefined };
  });
}

function replaceAge(line: string, column: AgeColumn): string {
  const cell = /^\S+/.exec(line.slice(column.start))?.[0];
  const alone = column.start === 0 || line[column.start - 1] === ' ';
  if (cell === undefined || !alone) return line;
  return replaceCell(line, column, AGE.test(cell) ? PLACEHOLDER : cell);
}

/** Replaces a cell; the next column begins at the same position for ages of any length. */
function replaceCell(line: string, { start, name, end }: AgeColumn, cell: string): string {
  const before = line.slice(0, start);
  return end === undefined
    ? before + cell
    : `${before}${cell.padEnd(Math.max(name.length, PLACEHOLDER.length))}   ${line.slice(end)}`;
}
