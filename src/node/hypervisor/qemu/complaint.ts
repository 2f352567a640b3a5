/** What is in the log of a process: how it was started, and what it said when it could not. Pure. */

const MAX_LENGTH = 400;

/** Begins the one line of a log that is ours. */
const OURS = 'selfsame: ';

/** The first line of the log of a process: how it was started. Nothing secret is among its words. */
export function startLine(command: string, args: readonly string[]): string {
  return `${OURS}${[command, ...args].map(shellWord).join(' ')}\n`;
}

function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The first line that is no mere warning, without the name of the program. */
export function firstComplaint(log: string, program: string): string {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith(OURS));
  const line = lines.find((text) => !/\bwarning:/.test(text)) ?? lines[0] ?? '';
  const own = line.startsWith(`${program}: `) ? line.slice(program.length + 2) : line;
  return own.length > MAX_LENGTH ? `${own.slice(0, MAX_LENGTH)}...` : own;
}

const PERMANENT = [
  /unsupported machine type/,
  /is not a valid device model name/,
  /unable to find CPU model/,
  /in use by/,
  /Bus '.*' not found/,
  /Property '.*' not found/,
  /Duplicate ID/,
  /Invalid CPU topology/,
  /invalid option|Invalid parameter|requires an argument/,
  /Parameter '.*' expects/,
];

/** Whether the same command line would fail in the same way again, on this machine, at any time. */
export function isPermanent(complaint: string): boolean {
  return PERMANENT.some((pattern) => pattern.test(complaint));
}
