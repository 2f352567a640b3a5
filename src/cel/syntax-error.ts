/**
 * The problems that the parser and the checker find, and their text in the format of cel-go: the line with a marker
 * below.
 */

export interface CelProblem {
  /** Offset in the source (in UTF-16 units); -1 for the source as a whole. */
  readonly at: number;
  /** `Syntax error: ...`, `undeclared reference to 'x' (in container '')`, `found no matching overload for ...`. */
  readonly message: string;
}

/** Thrown by the parser and by macros. */
export class CelSyntaxError extends Error {
  override name = 'CelSyntaxError';
  readonly problems: readonly CelProblem[];
  constructor(problems: readonly CelProblem[]) {
    super(problems[0]?.message ?? 'syntax error');
    this.problems = problems;
  }
}

/** The maximum number of problems in a message; the others are counted. */
export const MAX_PROBLEMS = 100;

/** Each problem shows its line, so a few long lines fill the message. */
const MAX_TEXT = 65_536;
const MAX_SNIPPET_BYTES = 16_384;

/**
 * Formats all problems in the order of the source, as cel-go prints them. `more` is the number of problems that were
 * not kept.
 */
export function describeProblems(source: string, problems: readonly CelProblem[], more = 0): string {
  const lines: string[] = [];
  let length = 0;
  for (const problem of problems.slice(0, MAX_PROBLEMS).toSorted((a, b) => a.at - b.at)) {
    if (length > MAX_TEXT) break;
    const text = describeProblem(source, problem);
    length += text.length;
    lines.push(text);
  }
  const omitted = problems.length - lines.length + more;
  if (omitted > 0) lines.push(`${omitted} more errors were truncated`);
  return lines.join('\n');
}

function describeProblem(source: string, { at, message }: CelProblem): string {
  if (at < 0) return `ERROR: <input>:-1:0: ${message}`;
  const before = source.slice(0, at);
  const lineStart = before.lastIndexOf('\n') + 1;
  const lineNumber = before.split('\n').length;
  const lead = [...before.slice(lineStart)];
  const head = `ERROR: <input>:${lineNumber}:${lead.length + 1}: ${message}`;

  const lineEnd = source.indexOf('\n', lineStart);
  const line = source.slice(lineStart, lineEnd === -1 ? undefined : lineEnd);
  if (source === '' || Buffer.byteLength(line) > MAX_SNIPPET_BYTES) return head;
  // cel-go treats each character of several bytes as wide and uses a wide marker.
  const dots = lead.map((char) => (isAscii(char) ? '.' : '\uff0e')).join('');
  const mark = isAscii(source.charAt(at)) ? '^' : '\uff3e';
  return `${head}\n | ${line.replaceAll('\t', ' ')}\n | ${dots}${mark}`;
}

function isAscii(char: string): boolean {
  return char === '' || char.charCodeAt(0) < 0x80;
}
