/** The one place of volumes/ that starts programs: bounded in time and output, with an environment of our own. */
import { execFile } from 'node:child_process';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 256 * 1024;
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
const MESSAGE_CHARACTERS = 500;

export type RunCommand = (command: string, args: readonly string[]) => Promise<{ stdout: string }>;

/** The program is missing, was too slow or did not succeed; the message has what it said. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

export const runCommand: RunCommand = (command, args) =>
  new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' as const, maxBuffer: OUTPUT_BYTES, env: ENVIRONMENT };
    execFile(command, [...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve({ stdout });
      const said = stderr.trim().slice(0, MESSAGE_CHARACTERS);
      const how = error.killed === true ? 'it took too long' : said === '' ? error.message : said;
      reject(new CommandError(`Cannot run ${command} ${args[0] ?? ''}: ${how}`, { cause: error }));
    });
  });
