/** Runs the programs of volumes/, with limits on time and output and with a fixed environment. */
import { execFile } from 'node:child_process';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 256 * 1024;
export const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
const MESSAGE_CHARACTERS = 500;

export interface RunOptions {
  /** Default: one minute. */
  readonly timeoutMs?: number;
  /** Kills the program and throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export type RunCommand = (
  command: string,
  args: readonly string[],
  options?: RunOptions,
) => Promise<{ stdout: string }>;

/** Thrown if a program is missing, takes too long or fails. The message contains its output. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
  readonly reason: string;

  constructor(command: string, args: readonly string[], reason: string, options?: ErrorOptions) {
    super(`Cannot run ${command} ${args[0] ?? ''}: ${reason}`, options);
    this.reason = reason;
  }
}

export const runCommand: RunCommand = async (command, args, { timeoutMs = TIMEOUT_MS, signal } = {}) => {
  signal?.throwIfAborted();
  const options = { timeout: timeoutMs, killSignal: 'SIGKILL' as const, maxBuffer: OUTPUT_BYTES, env: ENVIRONMENT };
  const result = Promise.withResolvers<{ stdout: string }>();
  const child = execFile(command, [...args], options, (error, stdout, stderr) => {
    if (error === null) return result.resolve({ stdout });
    const output = stderr.trim().slice(0, MESSAGE_CHARACTERS);
    const reason = error.killed === true ? 'it took too long' : output === '' ? error.message : output;
    result.reject(new ProgramError(command, args, reason, { cause: error }));
  });
  // Instead of execFile's own signal, which settles at once: the next caller must not find the program still writing.
  const kill = () => void child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  try {
    return await result.promise;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
};
