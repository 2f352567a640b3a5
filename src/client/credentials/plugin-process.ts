/**
 * Runs exec plugins as processes of this machine. Standard error goes to that of this process, as with kubectl, so that
 * users see login prompts and errors. exec-source.ts decides when a plugin runs.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Clock } from '#lib/clock.ts';

export interface PluginCall {
  /** A name to find in PATH, or a path. */
  readonly command: string;
  readonly args: readonly string[];
  /** Variables in addition to those of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Gives the plugin the standard input of this process. */
  readonly interactive: boolean;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
}

export type PluginOutcome =
  | { readonly kind: 'exited'; readonly code: number; readonly stdout: string }
  | { readonly kind: 'killed'; readonly signal: string }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'cannot-start'; readonly why: string }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'too-long' };

/** Everything that plugins need from this machine. */
export interface PluginHost {
  /** Runs a plugin to its end. Kills it and rejects with the signal's reason on abort. */
  run(call: PluginCall, options: { readonly signal: AbortSignal }): Promise<PluginOutcome>;
  /** Reports whether standard input is a terminal. */
  readonly hasTerminal: boolean;
  readonly clock: Clock;
}

export interface PluginHostOptions {
  /** The variables of this process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hasTerminal: boolean;
  readonly clock: Clock;
}

export function createPluginHost({ env, hasTerminal, clock }: PluginHostOptions): PluginHost {
  return {
    hasTerminal,
    clock,
    run(call, { signal }) {
      const { command } = call;
      const path = command.includes('/') ? command : findInPath(command, env['PATH'] ?? '');
      if (path === undefined) return Promise.resolve({ kind: 'not-found' });
      return runProcess(path, { ...call, env: { ...definedOnly(env), ...call.env } }, { clock, signal });
    },
  };
}

function runProcess(
  path: string,
  call: PluginCall,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<PluginOutcome> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error);
      return;
    }
    let child: ChildProcess;
    try {
      const stdin = call.interactive ? 'inherit' : 'ignore';
      child = spawn(path, call.args, { env: call.env, stdio: [stdin, 'pipe', 'inherit'] });
    } catch {
      // A NUL byte, for example. The error of Node quotes arguments and variables.
      resolve({ kind: 'cannot-start', why: 'its arguments or variables are not valid' });
      return;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    const stop = (): void => {
      child.kill('SIGKILL');
      // A process that the plugin has started may keep the pipe open.
      child.stdout?.destroy();
    };
    const end = (settle: () => void): void => {
      cancelTimer();
      signal.removeEventListener('abort', onAbort);
      settle();
    };
    const endEarly = (kind: 'timed-out' | 'too-long'): void => {
      stop();
      end(() => resolve({ kind }));
    };
    const onAbort = (): void => {
      stop();
      end(() => reject(signal.reason as Error));
    };
    const cancelTimer = clock.after(call.timeoutMs, () => endEarly('timed-out'));
    signal.addEventListener('abort', onAbort);
    child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > call.maxOutputBytes) endEarly('too-long');
      else chunks.push(chunk);
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      end(() => resolve(error.code === 'ENOENT' ? { kind: 'not-found' } : cannotStart(error)));
    });
    child.once('close', (code, killedBy) => {
      const stdout = Buffer.concat(chunks).toString('utf8');
      end(() => resolve(code === null ? { kind: 'killed', signal: `${killedBy}` } : { kind: 'exited', code, stdout }));
    });
  });
}

function cannotStart({ code }: NodeJS.ErrnoException): PluginOutcome {
  return { kind: 'cannot-start', why: code === 'EACCES' ? 'it is not executable' : (code ?? 'unknown error') };
}

function findInPath(name: string, path: string): string | undefined {
  const places = path.split(delimiter).filter((folder) => folder !== '');
  return places.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function definedOnly(env: PluginHostOptions['env']): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
