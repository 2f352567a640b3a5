/**
 * The `selfsame` program: reads argv and env, takes signals, prints for people and sets the exit code. 0: done or stopped as
 * asked; 1: could not do it; 2: misused.
 *
 *   command ─► lock of the data directory ─► engine ─► "ready" ─► SIGINT or SIGTERM ─► stop ─► exit 0
 *                                                                        └─ a second one ─► exit at once
 *
 * Standard output is for people and scripts (the last line of a start is `ready`), standard error for logs.
 */
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';
import { EXIT_OK, exitCodeOf, renderError } from '#lib/command-line/render-error.ts';
import { resolveCall, runCall } from '#lib/command-line/resolve-call.ts';
import { DataDirError } from '#lib/files/data-dir-lock.ts';
import { errorMessage } from '#lib/error-message.ts';
import { selfsameTable } from './program/commands.ts';

/** Errors whose message says all to the operator; others are our own mistakes and keep their stack. */
const PLAIN_ERRORS = new Set([
  'StoreDamagedError',
  'StoreUnavailableError',
  'PkiError',
  'TokenFileError',
  'KubeconfigError',
  'CredentialError',
  'JoinError',
  'ApiError',
  'TransportError',
]);

async function main([first, ...words]: readonly string[]): Promise<number> {
  if (first === undefined) throw noCommandError();
  const call = resolveCall(selfsameTable, [first === '--version' ? 'version' : first, ...words], process.env);
  if ('text' in call) {
    process.stdout.write(call.text);
    return EXIT_OK;
  }
  return (await runCall(call, { env: process.env, stdout: process.stdout })) ?? EXIT_OK;
}

function noCommandError(): UsageError {
  const error = new UsageError('no command given');
  error.usage = ['Usage: selfsame COMMAND [flags]', 'Try: selfsame help'];
  return error;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const plain = error instanceof CommandError || error instanceof DataDirError || PLAIN_ERRORS.has(error.name);
  return plain ? errorMessage(error) : (error.stack ?? error.message);
}

// A reader that has seen enough and closes the pipe must not end the server.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${renderError(error, describe(error))}\n`);
  process.exitCode = exitCodeOf(error);
}
