/** The log of a QEMU or swtpm process: its first line with the command, and the error text of a failed start. Pure. */

const MAX_LENGTH = 400;

/** The prefix of the line that we write ourselves. */
const OWN_PREFIX = 'selfsame: ';

/** Returns the first line of a process log: the command line. It contains no secrets. */
export function startLine(command: string, args: readonly string[]): string {
  return `${OWN_PREFIX}${[command, ...args].map(shellWord).join(' ')}\n`;
}

function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Returns the first line that is not a warning, without the program's name; options are shortened to the id or file
 * they name.
 */
export function findFirstError(log: string, program: string): string {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith(OWN_PREFIX));
  const line = lines.find((text) => !/\bwarning:/.test(text)) ?? lines[0] ?? '';
  const own = shortenOption(line.startsWith(`${program}: `) ? line.slice(program.length + 2) : line);
  return `${own.length > MAX_LENGTH ? `${own.slice(0, MAX_LENGTH)}...` : own}${hintFor(own)}`;
}

/** Shortens the option that QEMU repeats in full before the reason. */
function shortenOption(line: string): string {
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

/** Returns advice for errors whose text in QEMU does not say what to do. */
export function hintFor(errorText: string): string {
  return NO_SCSI_DEVICE.test(errorText) ? '; a LUN needs a SCSI device of this node' : '';
}

const NO_SCSI_DEVICE = /cannot get SG_IO version number|'host_device' driver requires/;

const PERMANENT_ERRORS = [
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

/** Reports whether the same command line would always fail in the same way on this machine. */
export function isPermanentError(errorText: string): boolean {
  return PERMANENT_ERRORS.some((pattern) => pattern.test(errorText));
}
