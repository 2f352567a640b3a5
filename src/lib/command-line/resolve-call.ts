/** Finds out what the words of a call ask for: a command with its arguments and flags, or a text to print. Pure. */
import {
  findArgCountError,
  isCommand,
  shownEntries,
  type Command,
  type CommandCall,
  type CommandEntry,
} from '#lib/command-line/command.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import type { FlagTable, FlagValues } from '#lib/command-line/flag.ts';
import { commandHelp, overview, usageLine } from '#lib/command-line/help.ts';
import { asksForHelp, parseArgs, type EnvironmentVariables, type ParsedArgs } from '#lib/command-line/parse-args.ts';
import { suggestion } from '#lib/text/nearest.ts';

/** A program as data. */
export interface ProgramTable<Context, Shared extends FlagTable> {
  /** The name of the program in examples. */
  readonly name: string;
  /** The words that the user types before a command, such as `kubectl virt`; by default the name. */
  readonly calledAs?: string;
  /** The first line of the overview, after the words that the user types. */
  readonly intro: string;
  readonly commands: readonly CommandEntry<Context>[];
  /** Flags that every command accepts. */
  readonly shared: Shared;
  /** Commands that the program does not have, by their words, with the alternative. */
  readonly unsupported?: ReadonlyMap<string, string>;
}

type CommandLineCall<Context, Shared extends FlagTable> =
  | { readonly text: string }
  | {
      readonly command: Command<Context>;
      readonly args: readonly string[];
      readonly flags: FlagValues<Shared> & Readonly<Record<string, unknown>>;
      /** The words that call the command. */
      readonly path: string;
    };

/** `argv` are the words after the name of the program. Throws UsageError. */
export function resolveCall<Context, Shared extends FlagTable>(
  program: ProgramTable<Context, Shared>,
  argv: readonly string[],
  env: EnvironmentVariables = {},
): CommandLineCall<Context, Shared> {
  const found = findCommand(program, argv);
  if ('overview' in found) return { text: found.overview };
  const { command, path, rest } = found;
  return withUsage(path, command, () => parseCall(program, { command, path, rest }, env));
}

/** Runs the command. A UsageError that it throws gets the usage of the command. */
export async function runCall<Context>(
  { command, args, flags, path }: ResolvedCall<Context>,
  context: Context,
): Promise<number | void> {
  try {
    return await command.run({ ...context, args, flags } as Context & CommandCall<never>);
  } catch (error) {
    throw addUsage(error, path, command);
  }
}

interface ResolvedCall<Context> {
  readonly command: Command<Context>;
  readonly args: readonly string[];
  readonly flags: object;
  readonly path: string;
}

function withUsage<T>(path: string, command: Pick<Command<never>, 'usage'>, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw addUsage(error, path, command);
  }
}

function addUsage(error: unknown, path: string, { usage }: Pick<Command<never>, 'usage'>): unknown {
  if (error instanceof UsageError && error.usage.length === 0) {
    error.usage = [`Usage: ${usageLine(path, usage)}`, `Try: ${path} --help`];
  }
  return error;
}

function parseCall<Context, Shared extends FlagTable>(
  program: ProgramTable<Context, Shared>,
  { command, path, rest }: FoundCommand<Context>,
  env: EnvironmentVariables,
): CommandLineCall<Context, Shared> {
  const parsed = parseOrHelp({ ...command.flags, ...program.shared }, rest, command, env);
  if (parsed === 'help' || parsed.flags['help'] === true) {
    const { name, calledAs = name } = program;
    return { text: commandHelp(path, command, program.shared).replaceAll(name, calledAs) };
  }
  const { args, flags, missing } = parsed;
  const argError = findArgCountError(command.args, args.length);
  if (argError !== undefined) throw new UsageError(argError);
  if (missing.length > 0) {
    throw new UsageError(`required flag(s) ${missing.map((name) => JSON.stringify(name)).join(', ')} not set`);
  }
  return { command, args, flags: flags as FlagValues<Shared> & typeof flags, path };
}

/** Parses the words of a command. A user who asks for help gets it even if another word is wrong. */
function parseOrHelp(
  table: FlagTable,
  words: readonly string[],
  { interspersed = true, takesAll = false }: { readonly interspersed?: boolean; readonly takesAll?: boolean },
  env: EnvironmentVariables,
): ParsedArgs<FlagTable> | 'help' {
  try {
    return parseArgs(table, takesAll ? ['--', ...words] : words, { env, interspersed });
  } catch (error) {
    if (error instanceof UsageError && asksForHelp(words)) return 'help';
    throw error;
  }
}

interface FoundCommand<Context> {
  readonly command: Command<Context>;
  readonly path: string;
  readonly rest: readonly string[];
}

type CommandMatch<Context> = FoundCommand<Context> | { readonly overview: string };

/** Commands below the words that were read so far. */
interface Level<Context> {
  readonly path: string;
  readonly intro: string;
  readonly entries: readonly CommandEntry<Context>[];
  /** The command that receives words which name no subcommand. */
  readonly itself?: Command<Context>;
  /** The end of the error message for an unknown word. */
  readonly expected: string;
}

function findCommand<Context>(
  program: ProgramTable<Context, FlagTable>,
  argv: readonly string[],
): CommandMatch<Context> {
  const { name, calledAs: path = name, intro, commands: entries, shared } = program;
  const top = { path, intro: `${path} ${intro}`, entries, expected: '' };
  let words = argv;
  // Repeated in `help help`.
  for (let first = takeWord(words, shared); first.word === 'help'; first = takeWord(words, shared)) {
    words = [...first.rest, '--help'];
  }
  return findInLevel(program, top, words);
}

function findInLevel<Context>(
  program: ProgramTable<Context, FlagTable>,
  level: Level<Context>,
  argv: readonly string[],
): CommandMatch<Context> {
  const { path, intro, entries, itself } = level;
  const { word, rest } = takeWord(argv, { ...itself?.flags, ...program.shared });
  const entry = entries.find(({ name }) => name === word);
  if (entry === undefined && itself !== undefined) return { command: itself, path, rest: argv };
  if (word === undefined) {
    // Reports errors in flags without a command.
    withUsage(path, { usage: 'COMMAND' }, () => parseArgs(program.shared, argv));
    return { overview: overview(path, intro, entries) };
  }
  if (entry === undefined) throw unknownCommand(program, level, word);
  const longer = `${path} ${word}`;
  if (isCommand(entry) && entry.commands === undefined) return { command: entry, path: longer, rest };
  return findInLevel(program, levelOf(entry, longer), rest);
}

function unknownCommand<Context>(
  { name, calledAs = name, unsupported }: ProgramTable<Context, FlagTable>,
  { path, entries, expected }: Level<Context>,
  word: string,
): UsageError {
  const instead = unsupported?.get(`${path} ${word}`.slice(calledAs.length + 1));
  const near = suggestion(
    word,
    shownEntries(entries).map((entry) => entry.name),
  );
  const hint = instead === undefined ? near || expected : `: ${instead}`;
  const error = new UsageError(`unknown command ${JSON.stringify(word)} for ${JSON.stringify(path)}${hint}`);
  addUsage(error, path, { usage: 'COMMAND' });
  return error;
}

function levelOf<Context>(entry: CommandEntry<Context>, path: string): Level<Context> {
  const { commands = [] } = entry;
  const names = commands.map(({ name }) => name);
  return {
    path,
    intro: entry.summary,
    entries: commands,
    ...(isCommand(entry) && { itself: entry }),
    expected: `; expected ${names.join(', ').replace(/, ([^,]*)$/, ' or $1')}`,
  };
}

/** Returns the first word that is neither a flag nor the value of one. */
function takeWord(argv: readonly string[], flags: FlagTable) {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (hasValueNext(word, flags)) i++;
    else if (!word.startsWith('-')) return { word, rest: argv.toSpliced(i, 1) };
  }
  return { word: undefined, rest: argv };
}

function hasValueNext(word: string, flags: FlagTable): boolean {
  return Object.values(flags).some(
    ({ name, short, value }) => value !== '' && (word === `--${name}` || (short !== undefined && word === `-${short}`)),
  );
}
