/**
 * The `selfsame` program: reads argv and env (through config.ts), takes signals, prints for people and sets the exit
 * code. 0: done or stopped as asked; 1: could not do it; 2: misused.
 *
 *   config ─► lock of the data directory ─► engine ─► "ready" ─► SIGINT or SIGTERM ─► stop ─► exit 0
 *                                                                       └─ a second one ─► exit at once
 *
 * Standard output is for people and scripts (the last line of a start is `ready`), standard error for logs.
 */
import { resolve } from 'node:path';
import { parseCommandLine } from './config.ts';
import type { UpOptions } from './config.ts';
import { systemClock } from '#lib/clock.ts';
import { DataDirError, acquireDataDir } from '#lib/data-dir-lock.ts';
import { createLog } from '#lib/log.ts';
import { VERSION } from '#lib/version.ts';

const OK = 0;
const FAILED = 1;
const MISUSED = 2;
const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;
/** Under `npm start` one Ctrl-C arrives twice: from the terminal and from npm. */
const SAME_SIGNAL_MS = 500;
/** A stop that takes longer has gone wrong; what was acknowledged is on disk anyway. */
const STOP_LIMIT_MS = 20_000;
/** Errors whose message says all to the operator; others are our own mistakes and keep their stack. */
const PLAIN_ERRORS = new Set(['StoreDamagedError', 'StoreUnavailableError', 'PkiError', 'TokenFileError']);

async function main(): Promise<number> {
  const config = parseCommandLine(process.argv.slice(2), process.env);
  if ('usageError' in config) {
    process.stderr.write(`selfsame: ${config.usageError}\nTry: selfsame help\n`);
    return MISUSED;
  }
  switch (config.command) {
    case 'help':
      process.stdout.write(config.text);
      return OK;
    case 'version':
      process.stdout.write(`selfsame ${VERSION} (node ${process.versions.node})\n`);
      return OK;
    case 'up':
      return await up(config.options);
  }
}

async function up(options: UpOptions): Promise<number> {
  const dataDir = resolve(options.dataDir);
  const stopped = stopSignal();
  const lock = acquireDataDir(dataDir);
  try {
    // Loaded only here, so that help and version are quick.
    const { startEngine } = await import('#engine/engine.ts');
    const engine = await startEngine({
      dataDir,
      host: options.host,
      port: options.port,
      tokenAuthFile: options.tokenAuthFile === undefined ? undefined : resolve(options.tokenAuthFile),
      log: createLog(options.logLevel),
      clock: systemClock,
    });
    try {
      process.stdout.write(welcome(engine.url, engine.kubeconfigPath));
      await stopped;
    } finally {
      systemClock.after(STOP_LIMIT_MS, () => {
        process.stderr.write('selfsame: Cannot stop in time; leaving now\n');
        process.exit(FAILED);
      });
      await engine.stop();
    }
  } catch (error) {
    throw listenError(error, options) ?? error;
  } finally {
    lock.release();
  }
  process.stdout.write('stopped\n');
  return OK;
}

/** Resolves at the first signal, also one that comes while the engine still starts; a second ends the process. */
function stopSignal(): Promise<void> {
  return new Promise((signalled) => {
    let firstAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const now = systemClock.now();
        if (firstAt !== undefined && now - firstAt > SAME_SIGNAL_MS) process.exit(128 + SIGNAL_NUMBERS[signal]);
        if (firstAt !== undefined) return;
        firstAt = now;
        process.stdout.write('stopping; once more to leave at once\n');
        signalled();
      });
    }
  });
}

function welcome(url: string, kubeconfig: string): string {
  return [
    `selfsame ${VERSION} serves ${url}`,
    '',
    'The kubeconfig of its administrator:',
    `  export KUBECONFIG=${shellWord(kubeconfig)}`,
    'Then try:',
    '  kubectl get namespaces',
    '  kubectl api-resources',
    '  kubectl create configmap hello --from-literal=who=world',
    '  kubectl get configmap hello -o yaml',
    '',
    'ready',
    '',
  ].join('\n');
}

function shellWord(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** What the system says about an address, in words that help. */
function listenError(error: unknown, { host, port }: UpOptions): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall }: NodeJS.ErrnoException = error;
  if (syscall !== 'listen' && syscall !== 'bind') return undefined;
  const where = `Cannot listen on ${host.includes(':') ? `[${host}]` : host}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return new OperatorError(`${where}: the port is in use by another program; choose another with --port`);
    case 'EADDRNOTAVAIL':
      return new OperatorError(`${where}: this machine has no such address; choose another with --host`);
    case 'EACCES':
      return new OperatorError(`${where}: this user may not use that port; choose another with --port`);
    default:
      return undefined;
  }
}

class OperatorError extends Error {
  override name = 'OperatorError';
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const plain = error instanceof OperatorError || error instanceof DataDirError || PLAIN_ERRORS.has(error.name);
  return plain ? error.message.replaceAll('\n', ' ') : (error.stack ?? error.message);
}

// A reader that has seen enough and closes the pipe must not end the server.
process.stdout.on('error', () => {});

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`selfsame: ${describe(error)}\n`);
  process.exitCode = FAILED;
}
