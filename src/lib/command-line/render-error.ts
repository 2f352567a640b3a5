/**
 * The errors of both programs on stderr, and their exit codes:
 *
 *   error: MESSAGE
 *   Usage: COMMAND ...        only after a command line that cannot be understood
 *   Try: COMMAND --help
 */
import { UsageError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** Returns the text of an error, without a newline at the end. `message` replaces the one of the error. */
export function renderError(error: unknown, message = errorMessage(error)): string {
  const lines = error instanceof UsageError ? error.usage : [];
  return [`error: ${message.trim()}`, ...lines].join('\n');
}

/** Returns 2 if the command line could not be understood, and 1 for all other errors. */
export function exitCodeOf(error: unknown): number {
  return error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED;
}
