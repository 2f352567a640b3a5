/** Runs the programs of this folder (ip, nft, nsenter, dnsmasq), with limits on time and output. */
import { runBounded } from '#lib/run-bounded.ts';
import { PodNetworkError } from '#node/network/pod-networks.ts';

interface NetworkProgramOptions {
  readonly input?: string;
  readonly signal?: AbortSignal | undefined;
}

const TIMEOUT_MS = 20_000;
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;
const MESSAGE_CHARACTERS = 500;
const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

/** Returns the words that run a program in a namespace; none for that of this process. */
export function launcherIn(namespace: string | undefined): string[] {
  return namespace === undefined ? [] : ['nsenter', `--net=${namespace}`, '--'];
}

/** Returns the standard output. Throws PodNetworkError with the standard error of a program that failed. */
export async function runNetworkProgram(
  command: string,
  args: readonly string[],
  { input, signal }: NetworkProgramOptions = {},
): Promise<string> {
  const limits = { timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES };
  const { outcome, stdout, stderr, end } = await runBounded(command, args, { input, env, signal, ...limits });
  if (outcome === 'succeeded') return stdout;
  const reason = outcome === 'failed' ? stderr.trim().slice(0, MESSAGE_CHARACTERS) || end : `it ${outcome}`;
  throw new PodNetworkError(`Cannot run "${[command, ...args].join(' ')}": ${reason}`);
}
