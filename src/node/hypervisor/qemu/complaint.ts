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

/** The first line that is no mere warning, without the name of the program; options are told by what they name. */
export function firstComplaint(log: string, program: string): string {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith(OURS));
  const line = lines.find((text) => !/\bwarning:/.test(text)) ?? lines[0] ?? '';
  const own = withShortOption(line.startsWith(`${program}: `) ? line.slice(program.length + 2) : line);
  return `${own.length > MAX_LENGTH ? `${own.slice(0, MAX_LENGTH)}...` : own}${hintFor(own)}`;
}

/** QEMU repeats the whole option, and what is wrong with it comes last. */
function withShortOption(line: string): string {
  const [, option, json, reason] = /^(-[a-z]+) (\{.*\}): (.*)$/.exec(line) ?? [];
  if (option === undefined || json === undefined || reason === undefined) return line;
  try {
    const { id, filename, file } = JSON.parse(json) as OptionNames;
    return `${option} ${id ?? filename ?? file?.filename ?? '{...}'}: ${reason}`;
  } catch {
    return line;
  }
}

interface OptionNames {
  readonly id?: string;
  readonly filename?: string;
  readonly file?: { readonly filename?: string };
}

/** What people can do about it, where QEMU's own words do not say. */
export function hintFor(complaint: string): string {
  return NO_SCSI_DEVICE.test(complaint) ? '; expected a SCSI device of this node for a LUN' : '';
}

const NO_SCSI_DEVICE = /cannot get SG_IO version number|'host_device' driver requires/;

const PERMANENT = [
  /unsupported machine type/,
  /is not a valid device model name/,
  /unable to find CPU model/,
  /not available for .*in use by/,
  /bootindex \d+ has already been used/,
  /Bus '.*' not found/,
  /Property '.*' not found/,
  /Duplicate ID/,
  /Invalid CPU topology/,
  /invalid option|Invalid parameter|requires an argument/,
  /Parameter '.*' expects/,
  /does not support hotplugging/,
  /lun already used by/,
  /unit \d+ is in use/,
  NO_SCSI_DEVICE,
];

/** Whether the same command line would fail in the same way again, on this machine, at any time. */
export function isPermanent(complaint: string): boolean {
  return PERMANENT.some((pattern) => pattern.test(complaint));
}
