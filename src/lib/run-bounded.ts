/**
 * Runs a program to its end, with limits on its time and its output. The program gets a process group of its own, which
 * is killed as a whole, so that no child of it keeps running or keeps the output open.
 */
import { spawn } from 'node:child_process';

interface BoundedRun {
  /** Written to the standard input. */
  readonly input?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** The limit of the standard output and of the standard error, each. */
  readonly maxOutputBytes: number;
  /** Kills the program and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

interface BoundedResult {
  /** `failed`: it cannot be started, has another exit code than 0, or was killed by somebody else. */
  readonly outcome: 'succeeded' | 'failed' | 'took too long' | 'printed too much';
  readonly stdout: string;
  readonly stderr: string;
  /** A short text about the end: "exit code 1", "spawn x ENOENT". */
  readonly end: string;
}

export async function runBounded(command: string, args: readonly string[], run: BoundedRun): Promise<BoundedResult> {
  run.signal?.throwIfAborted();
  const child = spawn(command, args, { env: { ...run.env }, stdio: 'pipe', detached: true });
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const sizes = { stdout: 0, stderr: 0 };
  let stopped: 'took too long' | 'printed too much' | undefined;
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  const collect = (name: 'stdout' | 'stderr') => (chunk: Buffer) => {
    sizes[name] += chunk.length;
    if (sizes[name] <= run.maxOutputBytes) return void output[name].push(chunk);
    stopped ??= 'printed too much';
    kill();
  };
  child.stdout.on('data', collect('stdout'));
  child.stderr.on('data', collect('stderr'));
  child.stdin.on('error', () => undefined); // It may end before it has read everything.
  child.stdin.end(run.input ?? '');
  const timer = setTimeout(() => {
    stopped ??= 'took too long';
    kill();
  }, run.timeoutMs);
  run.signal?.addEventListener('abort', kill, { once: true });
  try {
    const end = await new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code, signal) => resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`));
    });
    run.signal?.throwIfAborted();
    return {
      outcome: stopped ?? (end === 'exit code 0' ? 'succeeded' : 'failed'),
      stdout: Buffer.concat(output.stdout).toString('utf8'),
      stderr: Buffer.concat(output.stderr).toString('utf8'),
      end,
    };
  } finally {
    clearTimeout(timer);
    run.signal?.removeEventListener('abort', kill);
  }
}
