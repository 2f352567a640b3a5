/** Runs one CNI plugin with limits on its time and output, and turns its failures into errors that name it. */
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { runBounded } from '#lib/run-bounded.ts';
import { CniError, parseObject } from '#node/network/linux/cni/cni-config.ts';

export type CniCommand = 'ADD' | 'CHECK' | 'DEL';

interface CniPluginRun {
  readonly directories: readonly string[];
  /** Words that come before the path of the plugin; for plugins that run in another namespace than this process. */
  readonly launcher: readonly string[];
  readonly timeoutMs: number;
  readonly command: CniCommand;
  readonly type: string;
  readonly input: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

const MAX_OUTPUT_BYTES = 256 * 1024;
const MAX_MESSAGE_CHARACTERS = 500;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** The codes of the specification that a repetition does not change: version, field, configuration. */
const PERMANENT_CODES: ReadonlySet<number> = new Set([1, 2, 6, 7]);

/** Returns the result that the plugin printed. Only that of ADD matters. */
export async function runCniPlugin(run: CniPluginRun): Promise<Record<string, unknown> | undefined> {
  const { command, type, directories, launcher, timeoutMs, signal, input } = run;
  const path = await findPlugin(type, directories);
  const env = { PATH, LC_ALL: 'C', ...run.env, CNI_COMMAND: command, CNI_PATH: directories.join(':') };
  const [program, ...args] = [...launcher, path];
  const ended = await runBounded(program, args, { input, env, timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, signal });
  const printed = parseObject(ended.stdout);
  const fail = (problem: string, permanent = false) =>
    new CniError(`CNI plugin "${type}" failed at ${command}: ${problem}`, { permanent });
  switch (ended.outcome) {
    case 'took too long':
      throw fail(`it took longer than ${timeoutMs} ms and was killed`);
    case 'printed too much':
      throw fail(`it printed more than ${MAX_OUTPUT_BYTES} bytes and was killed`);
    case 'failed': {
      const permanent = PERMANENT_CODES.has(Number(printed?.['code']));
      throw fail(ownMessage(printed) ?? shorten(ended.stderr, ended.stdout, ended.end), permanent);
    }
    case 'succeeded':
  }
  if (printed === undefined && command === 'ADD') {
    const found = ended.stdout.trim() === '' ? 'nothing' : JSON.stringify(shorten(ended.stdout));
    throw fail(`it printed ${found}; expected a result as JSON`);
  }
  return printed;
}

/** Returns the message and details of an error as the specification defines it. */
function ownMessage(printed: Record<string, unknown> | undefined): string | undefined {
  const parts = [printed?.['msg'], printed?.['details']].filter((part) => typeof part === 'string' && part !== '');
  return parts.length === 0 ? undefined : shorten(parts.join('; '));
}

/** Returns the first text that is not empty, with a limited length. */
function shorten(...texts: readonly string[]): string {
  return (texts.map((text) => text.trim()).find((text) => text !== '') ?? '').slice(0, MAX_MESSAGE_CHARACTERS);
}

async function findPlugin(type: string, directories: readonly string[]): Promise<string> {
  for (const directory of directories) {
    const path = join(directory, type);
    if (await access(path, constants.X_OK).then(() => true, () => false)) return path; // prettier-ignore
  }
  throw new CniError(
    `CNI plugin "${type}" is not in ${directories.join(', ')}; install it, for example with Debian's containernetworking-plugins`,
    { permanent: true, isMissing: true },
  );
}
