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
  const line = findFirstErrorLine(log, program);
  const option = findRefusedOption(line);
  const own = option === undefined ? line : `${option.option} ${option.id ?? option.file ?? '{...}'}: ${option.why}`;
  return `${own.length > MAX_LENGTH ? `${own.slice(0, MAX_LENGTH)}...` : own}${hintFor(own)}`;
}

/** Returns the first line that is not a warning, without the program's name. */
export function findFirstErrorLine(log: string, program: string): string {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith(OWN_PREFIX));
  const line = lines.find((text) => !/\bwarning:/.test(text)) ?? lines[0] ?? '';
  return line.startsWith(`${program}: `) ? line.slice(program.length + 2) : line;
}

/** An option that QEMU repeats in full before the reason why it refuses it. */
export interface RefusedOption {
  /** The name of the option, such as -device. */
  readonly option: string;
  readonly id?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly file?: string | undefined;
  readonly why: string;
}

/** Returns the option that an error line names, or undefined if it names none. */
export function findRefusedOption(line: string): RefusedOption | undefined {
  const [, option, json, why] = /^(-[a-z]+) (\{.*\}): (.*)$/.exec(line) ?? [];
  if (option === undefined || json === undefined || why === undefined) return undefined;
  try {
    const { id, filename, file, 'node-name': nodeName } = JSON.parse(json) as OptionNames;
    return { option, id, nodeName, file: filename ?? file?.filename, why };
  } catch {
    return undefined;
  }
}

interface OptionNames {
  readonly id?: string;
  readonly 'node-name'?: string;
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
