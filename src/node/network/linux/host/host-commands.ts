/**
 * Runs programs in the network namespace of the host, with limits on time and output and with a fixed environment.
 * Everything of this folder reads and changes the host through it, settings in /proc/sys/net included, because what a
 * process sees there depends on its network namespace.
 */
import { execFile } from 'node:child_process';

const TIMEOUT_MS = 20_000;
const OUTPUT_BYTES = 4 * 1024 * 1024;
const MESSAGE_CHARACTERS = 1000;
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

/** Thrown if a program is missing, takes too long, prints too much or fails. The message contains its output. */
export class HostCommandError extends Error {
  override readonly name = 'HostCommandError';
  /** Set if the program is not installed. */
  readonly isMissing: boolean;

  constructor(command: string, reason: string, cause: unknown, isMissing = false) {
    super(`Cannot run "${command}": ${reason}`, { cause });
    this.isMissing = isMissing;
  }
}

/** Returns the standard output. Throws HostCommandError. */
export type RunOnHost = (command: string, args: readonly string[], input?: string) => Promise<string>;

/** `namespace` is the path of the network namespace of the host; undefined for that of this process. */
export function runOnHost(namespace?: string): RunOnHost {
  return (command, args, input) => {
    const words = namespace === undefined ? [command, ...args] : ['nsenter', `--net=${namespace}`, command, ...args];
    return run(words, [command, ...args].join(' '), input);
  };
}

function run([file = '', ...args]: readonly string[], shown: string, input = ''): Promise<string> {
  const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' as const, maxBuffer: OUTPUT_BYTES, env: ENVIRONMENT };
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const isMissing = error.code === 'ENOENT' || (file === 'nsenter' && error.code === 127);
      const output = stderr.trim().slice(0, MESSAGE_CHARACTERS);
      const reason = isMissing
        ? 'it is not installed'
        : error.killed === true
          ? 'it took too long'
          : output || error.message;
      reject(new HostCommandError(shown, reason, error, isMissing));
    });
    child.stdin?.on('error', () => undefined); // The program may end before it has read everything.
    child.stdin?.end(input);
  });
}

/** Writes settings below /proc/sys/net, in order. Paths are such as ipv4/conf/eth0/forwarding. */
export async function writeSettings(run: RunOnHost, settings: readonly (readonly [string, string])[]): Promise<void> {
  if (settings.length === 0) return;
  const script = 'while read -r path value; do printf %s "$value" >"/proc/sys/net/$path" || exit 1; done';
  await run('sh', ['-c', script], settings.map(([path, value]) => `${path} ${value}\n`).join(''));
}

/** Returns the settings below /proc/sys/net that match the shell patterns; those that do not exist are left out. */
export async function readSettings(run: RunOnHost, patterns: readonly string[]): Promise<Map<string, string>> {
  // The last file makes grep print names also if only one other file exists.
  const text = await run('sh', ['-c', `cd /proc/sys/net && grep -s '' ${patterns.join(' ')} /dev/null || true`]);
  const lines = text.split('\n').filter((line) => line !== '');
  return new Map(
    lines.map((line) => {
      const colon = line.lastIndexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
}
