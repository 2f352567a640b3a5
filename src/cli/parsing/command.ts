/** Types of virtctl commands and command groups. Each is one value in commands/. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import type { AccessOptions } from '#cli/connection/cluster-access.ts';
import type { Completes, FlagTable, FlagValues } from '#cli/parsing/flags.ts';
import type { Programs } from '#cli/programs.ts';
import type { Clock } from '#lib/clock.ts';

/** The standard streams of the user. */
export interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown };
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

export interface CommandContext<Values> {
  readonly args: readonly string[];
  readonly flags: Values;
  /**
   * Reads the kubeconfig and creates the connection; later calls return the same one. `choice` replaces the access flags
   * of this call; used to complete the words of another call. Throws CommandError.
   */
  connect(choice?: AccessOptions): Promise<ApiConnection>;
  /** The value of --namespace; undefined if not given, regardless of the kubeconfig. */
  readonly namespace: string | undefined;
  /** Writes one line to stdout. */
  print(line: string): void;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly programs: Programs;
  /** Flags with which another virtctl call reaches the same server as the same user. */
  readonly accessArguments: readonly string[];
  /** The name of the local user. */
  readonly user: string | undefined;
  /** Resolves at Ctrl-C. After the first call, Ctrl-C has no other effect. */
  untilInterrupted(): Promise<void>;
}

/** The number of arguments of a command, or its minimum and maximum. */
export type ArgCount = number | readonly [least: number, most: number];

export interface CommandDefinition<Table extends FlagTable> {
  readonly name: string;
  /** Arguments in the usage line, such as `(VM)`. */
  readonly usage: string;
  readonly summary: string;
  /** Text below the summary in the help. */
  readonly details?: string;
  /** Examples, each with a `#` line. `virtctl` is replaced with the name of the program. */
  readonly example: string;
  readonly flags: Table;
  readonly args: ArgCount;
  /** Completions of its arguments, by position. */
  readonly completes?: readonly Completes[];
  /** Omitted from the overview: called by programs only. */
  readonly hidden?: true;
  /** Receives all words unparsed, flags included. */
  readonly takesAll?: true;
  /** Returns the exit code if it is not 0. Rejects with the error to show. */
  run(context: CommandContext<FlagValues<Table>>): Promise<number | void>;
}

export interface Command extends Omit<CommandDefinition<FlagTable>, 'run'> {
  run(context: CommandContext<never>): Promise<number | void>;
  /** Subcommands. Words that name none of them are arguments of this command. */
  readonly commands?: readonly Command[];
}

export function defineCommand<Table extends FlagTable>(definition: CommandDefinition<Table>): Command {
  return definition;
}

/** Returns cobra's message for a wrong number of arguments, or undefined. */
export function findArgCountError(takes: ArgCount, received: number): string | undefined {
  const [least, most] = typeof takes === 'number' ? [takes, takes] : takes;
  if (received >= least && received <= most) return undefined;
  return `accepts ${least === most ? least : `between ${least} and ${most}`} arg(s), received ${received}`;
}

/** Commands of two words: `virtctl identity duplicates`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly Command[];
}

export type CommandEntry = Command | CommandGroup;

export function isCommand(entry: CommandEntry): entry is Command {
  return 'run' in entry;
}
