/** The context in which commands of virtctl run, and their definition. Each command is one value in commands/. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import type { AccessOptions } from '#cli/connection/cluster-access.ts';
import type { Programs } from '#cli/programs.ts';
import type { Clock } from '#lib/clock.ts';
import type * as commandLine from '#lib/command-line/command.ts';
import type { FlagTable } from '#lib/command-line/flag.ts';
import type { StatusOutput } from '#lib/terminal/status-output.ts';
import type { MaybeTerminal, Painter } from '#lib/terminal/colour.ts';

/** The standard streams of the user. */
export interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown };
  readonly stdout: NodeJS.WritableStream & MaybeTerminal;
  readonly stderr: NodeJS.WritableStream & MaybeTerminal;
}

export interface VirtctlContext {
  /**
   * Reads the kubeconfig and creates the connection; later calls return the same one. `choice` replaces the access flags
   * of this call; used to complete the words of another call. Throws CommandError.
   */
  connect(choice?: AccessOptions): Promise<ApiConnection>;
  /** The value of --namespace; undefined if not given, regardless of the kubeconfig. */
  readonly namespace: string | undefined;
  /** Writes one line to stdout, without control characters. */
  print(line: string): void;
  /** Writes one line to stderr, without control characters: a note, a warning or progress. */
  report(line: string): void;
  /** Colours text for stdout. Text from the server must have no control characters (replaceControls). */
  readonly paint: Painter;
  /** Progress on stderr. */
  readonly status: StatusOutput;
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

export type CommandContext<Values> = VirtctlContext & commandLine.CommandCall<Values>;
export type VirtctlCommand = commandLine.Command<VirtctlContext>;
export type VirtctlGroup = commandLine.CommandGroup<VirtctlContext>;
export type VirtctlEntry = commandLine.CommandEntry<VirtctlContext>;

export function defineCommand<Table extends FlagTable>(
  definition: commandLine.CommandDefinition<Table, VirtctlContext>,
): VirtctlCommand {
  return definition;
}
