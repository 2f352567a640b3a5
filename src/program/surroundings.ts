/** Shared by all commands of the program: paths, exit codes, signals and errors for the operator. */
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import type { PluginHost } from '#client/credentials/plugin-process.ts';
import { systemClock } from '#lib/clock.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { EXIT_FAILED, renderError } from '#lib/command-line/render-error.ts';

const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;
/** Signals within this time count as one, because under `npm start` both the terminal and npm send Ctrl-C. */
const SAME_SIGNAL_MS = 500;
/** The time limit for a stop. Acknowledged writes are on disk in any case. */
const STOP_LIMIT_MS = 20_000;
const PROJECT_ROOT = join(import.meta.dirname, '../..');
export const GUEST_DIR = join(PROJECT_ROOT, '.cache/guest');
/** The command that starts this program again, for nodes and Jobs. */
export const PROGRAM = { file: process.execPath, args: [...process.execArgv, join(PROJECT_ROOT, 'src/main.ts')] };

export async function stopInTime(stop: () => Promise<void>): Promise<void> {
  systemClock.after(STOP_LIMIT_MS, () => {
    process.stderr.write(`${renderError(new CommandError('Cannot stop in time; exiting now'))}\n`);
    process.exit(EXIT_FAILED);
  });
  await stop();
}

/** Resolves at the first signal, even if the engine is still starting. A second signal ends the process. */
export function stopSignal(): Promise<void> {
  return new Promise((signalled) => {
    let firstAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const now = systemClock.now();
        if (firstAt !== undefined && now - firstAt > SAME_SIGNAL_MS) process.exit(128 + SIGNAL_NUMBERS[signal]);
        if (firstAt !== undefined) return;
        firstAt = now;
        // A terminal prints ^C at the cursor.
        process.stdout.write(`${process.stdout.isTTY ? '\n' : ''}stopping; press Ctrl-C again to exit immediately\n`);
        signalled();
      });
    }
  });
}

/** Returns the host of exec plugins, which get the environment and the terminal of this process. */
export async function pluginHost(env: EnvironmentVariables): Promise<PluginHost> {
  const { createPluginHost } = await import('#client/credentials/plugin-process.ts');
  return createPluginHost({ env, hasTerminal: isatty(0), clock: systemClock });
}

/** Translates a listen error into an CommandError with a hint; undefined for other errors. */
export function listenError(error: unknown, { host, port }: { host: string; port: number }): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall }: NodeJS.ErrnoException = error;
  if (syscall !== 'listen' && syscall !== 'bind') return undefined;
  const where = `Cannot listen on ${host.includes(':') ? `[${host}]` : host}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return new CommandError(`${where}: the port is in use by another program; choose another with --port`);
    case 'EADDRNOTAVAIL':
      return new CommandError(`${where}: this machine has no such address; choose another with --host`);
    case 'EACCES':
      return new CommandError(`${where}: permission denied; choose another with --port`);
    default:
      return undefined;
  }
}

/** Returns the first external IPv4 address of this machine. */
export function firstAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}
