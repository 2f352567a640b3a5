/** The one place of volumes/ that starts programs: bounded in time and output, with an environment of our own. */
import { execFile } from 'node:child_process';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 256 * 1024;
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
const MESSAGE_CHARACTERS = 500;

export interface RunOptions {
  /** A minute, unless told. */
  readonly timeoutMs?: number;
  /** The program is killed; its reason is thrown. */
  readonly signal?: AbortSignal | undefined;
}

export type RunCommand = (
  command: string,
  args: readonly string[],
  options?: RunOptions,
) => Promise<{ stdout: string }>;

/** The program is missing, was too slow or did not succeed; the message has what it said. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

export const runCommand: RunCommand = async (command, args, { timeoutMs = TIMEOUT_MS, signal } = {}) => {
  signal?.throwIfAborted();
  const options = { timeout: timeoutMs, killSignal: 'SIGKILL' as const, maxBuffer: OUTPUT_BYTES, env: ENVIRONMENT };
  const ran = Promise.withResolvers<{ stdout: string }>();
  const child = execFile(command, [...args], options, (error, stdout, stderr) => {
    if (error === null) return ran.resolve({ stdout });
    const said = stderr.trim().slice(0, MESSAGE_CHARACTERS);
    const how = error.killed === true ? 'it took too long' : said === '' ? error.message : said;
    ran.reject(new CommandError(`Cannot run ${command} ${args[0] ?? ''}: ${how}`, { cause: error }));
  });
  // By ourselves: it settles only when the program is gone, so that whoever comes next finds nobody who still writes.
  const kill = () => void child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  try {
    return await ran.promise;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
};
