/** What a command of virtctl is: one value per command, in commands/; a group of them is a value, too. */
import type { ApiConnection } from '#cli/api-connection.ts';
import type { AccessChoice } from '#cli/cluster-access.ts';
import type { Completes, FlagTable, FlagValues } from '#cli/flags.ts';
import type { Programs } from '#cli/programs.ts';
import type { Clock } from '#lib/clock.ts';

/** The user's side. */
export interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown };
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

export interface CommandContext<Values> {
  readonly args: readonly string[];
  readonly flags: Values;
  /**
   * Reads the kubeconfig and gets ready; throws CommandError. Every call gives the same. `choice` stands for the flags of
   * the call, where these are words of another.
   */
  connect(choice?: AccessChoice): Promise<ApiConnection>;
  /** As named by the flag of this very call; undefined where it is not given, whatever the kubeconfig says. */
  readonly namespace: string | undefined;
  /** Writes one line to stdout. */
  print(line: string): void;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly programs: Programs;
  /** Flags with which another call of virtctl talks to the same server, as the same user. */
  readonly sameAccess: readonly string[];
  /** Who the user is on this machine. */
  readonly user: string | undefined;
  /** Resolves when the user wants an end: from the first call on, this is the only effect of Ctrl-C. */
  untilInterrupted(): Promise<void>;
}

/** How many arguments a command takes: so many, or from the one to the other. */
export type ArgCount = number | readonly [least: number, most: number];

export interface CommandDefinition<Table extends FlagTable> {
  readonly name: string;
  /** What stands after the name: `(VM)`. */
  readonly usage: string;
  readonly summary: string;
  /** What the help says besides. */
  readonly details?: string;
  /** Each with its `#` line; `virtctl` stands for the name of the program. */
  readonly example: string;
  readonly flags: Table;
  readonly args: ArgCount;
  /** What its arguments can be, one after the other, for shells that complete them. */
  readonly completes?: readonly Completes[];
  /** For programs, not for people: the overview leaves it out. */
  readonly hidden?: true;
  /** Its words are another program's: no flag among them is looked at. */
  readonly takesAll?: true;
  /** Rejects with what is to be shown. The exit code, where it is not 0. */
  run(context: CommandContext<FlagValues<Table>>): Promise<number | void>;
}

export interface Command extends Omit<CommandDefinition<FlagTable>, 'run'> {
  run(context: CommandContext<never>): Promise<number | void>;
  /** Commands of one word more; words that name none of them are this command's own. */
  readonly commands?: readonly Command[];
}

export function defineCommand<Table extends FlagTable>(definition: CommandDefinition<Table>): Command {
  return definition;
}

/** What is wrong with this many, in cobra's words; undefined where nothing is. */
export function argCountFault(takes: ArgCount, received: number): string | undefined {
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
