/** Runs a short program of the host, such as ip or mount, to its end. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;
const MAX_OUTPUT_BYTES = 64 * 1024;

/** Returns the standard output. Throws HypervisorError with the standard error of a program that failed. */
export async function runProgram(command: string, args: readonly string[]): Promise<string> {
  try {
    return (await run(command, args, { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES })).stdout;
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    const words = [command, ...args].join(' ');
    throw new HypervisorError(`"${words}" failed: ${(stderr ?? message).trim() || message}`, { cause });
  }
}
