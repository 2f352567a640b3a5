import { errorMessage } from '#lib/error-message.ts';

/** Failures of a command whose message is shown to the user unchanged, without a stack. */
export class CommandError extends Error {
  override name = 'CommandError';
}

/** A command line that cannot be understood. Nothing was done. */
export class UsageError extends CommandError {
  override name = 'UsageError';
  /** The lines after the message: the usage of the command, and where its help is. Empty until the command is known. */
  usage: readonly string[] = [];
}

/** Waits for the work. Its failure becomes a CommandError whose message begins with `prefix`. */
export async function explainFailure<T>(prefix: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new CommandError(prefix + errorMessage(cause), { cause });
  }
}
