/** Failures of a command whose message is shown to the user unchanged, without a stack. */
export class CommandError extends Error {
  override name = 'CommandError';
}

/** A command line that cannot be understood. Nothing was done. */
export class UsageError extends CommandError {
  override name = 'UsageError';
}
