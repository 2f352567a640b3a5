/** Types of commands and command groups, for both programs. `Context` is what a program gives to its commands. */
import type { Completes, FlagTable, FlagValues } from '#lib/command-line/flag.ts';

/** The arguments and flags of a call. */
export interface CommandCall<Values> {
  readonly args: readonly string[];
  readonly flags: Values;
}

/** The number of arguments of a command, or its minimum and maximum. */
export type ArgCount = number | readonly [least: number, most: number];

export interface CommandDefinition<Table extends FlagTable, Context> {
  readonly name: string;
  /** Arguments in the usage line, such as `(VM)`. */
  readonly usage: string;
  readonly summary: string;
  /** Text below the summary in the help. */
  readonly details?: string;
  /** Examples, each with a `#` line. */
  readonly example: string;
  readonly flags: Table;
  readonly args: ArgCount;
  /** Completions of its arguments, by position. */
  readonly completes?: readonly Completes[];
  /** Omitted from the overview: called by programs only. */
  readonly hidden?: true;
  /** Receives all words unparsed, flags included. */
  readonly takesAll?: true;
  /** False: the flags come before the arguments; words after the first argument belong to it. */
  readonly interspersed?: false;
  /** Returns the exit code if it is not 0. Rejects with the error to show. */
  run(context: Context & CommandCall<FlagValues<Table>>): Promise<number | void>;
}

export interface Command<Context> extends Omit<CommandDefinition<FlagTable, Context>, 'run'> {
  run(context: Context & CommandCall<never>): Promise<number | void>;
  /** Subcommands. Words that name none of them are arguments of this command. */
  readonly commands?: readonly Command<Context>[];
}

/** Commands of two words: `virtctl identity duplicates`. */
export interface CommandGroup<Context> {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly Command<Context>[];
}

export type CommandEntry<Context> = Command<Context> | CommandGroup<Context>;

export function isCommand<Context>(entry: CommandEntry<Context>): entry is Command<Context> {
  return 'run' in entry;
}

/** Returns the entries that are not hidden. */
export function shownEntries<Context>(entries: readonly CommandEntry<Context>[]): readonly CommandEntry<Context>[] {
  return entries.filter((entry) => !isCommand(entry) || entry.hidden !== true);
}

/** Returns cobra's message for a wrong number of arguments, or undefined. */
export function findArgCountError(takes: ArgCount, received: number): string | undefined {
  const [least, most] = typeof takes === 'number' ? [takes, takes] : takes;
  if (received >= least && received <= most) return undefined;
  return `accepts ${least === most ? least : `between ${least} and ${most}`} arg(s), received ${received}`;
}
