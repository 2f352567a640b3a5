/** Finds the command that the words of a call name, or the requested overview. Pure. */
import { isCommand, type Command, type CommandEntry } from '#cli/parsing/command.ts';
import { CommandError, parseArgs, type FlagTable } from '#cli/parsing/flags.ts';
import { overview, shownEntries } from '#cli/parsing/help.ts';
import { UNSUPPORTED_COMMANDS } from '#cli/unsupported-commands.ts';
import { suggestion } from '#lib/nearest.ts';

export type CommandMatch =
  | {
      readonly command: Command;
      /** The words that the user types, such as `virtctl identity duplicates`. */
      readonly path: string;
      /** The remaining words. */
      readonly rest: readonly string[];
    }
  | { readonly overview: string };

interface CommandWords {
  readonly argv: readonly string[];
  readonly program: string;
}

/** Throws CommandError. */
export function findCommand(
  entries: readonly CommandEntry[],
  shared: FlagTable,
  { argv, program }: CommandWords,
): CommandMatch {
  const intro = `${program} controls virtual machine related operations on your kubernetes cluster.`;
  const top: Level = { path: program, intro, entries, expected: '' };
  const { word, rest } = takeWord(argv, shared);
  return findInLevel(top, shared, word === 'help' ? [...rest, '--help'] : argv);
}

interface Level {
  readonly path: string;
  readonly intro: string;
  readonly entries: readonly CommandEntry[];
  /** The command that receives words which name no subcommand. */
  readonly itself?: Command;
  /** The end of the error message for an unknown word. */
  readonly expected: string;
}

function findInLevel(level: Level, shared: FlagTable, argv: readonly string[]): CommandMatch {
  const { path, intro, entries, itself } = level;
  const { word, rest } = takeWord(argv, { ...itself?.flags, ...shared });
  const entry = entries.find(({ name }) => name === word);
  if (entry === undefined && itself !== undefined) return { command: itself, path, rest: argv };
  if (word === undefined) {
    // Reports errors in flags without a command.
    parseArgs(shared, argv);
    return { overview: overview(path, intro, entries) };
  }
  if (entry === undefined) throw unknownCommand(level, word);
  const longer = `${path} ${word}`;
  if (isCommand(entry) && entry.commands === undefined) {
    return { command: entry, path: longer, rest: entry.takesAll === true ? ['--', ...rest] : rest };
  }
  return findInLevel(levelOf(entry, longer), shared, rest);
}

function unknownCommand({ path, entries, expected }: Level, word: string): CommandError {
  const instead = UNSUPPORTED_COMMANDS.get([...path.split(' ').slice(programWords(path)), word].join(' '));
  const names = shownEntries(entries).map(({ name }) => name);
  const near = suggestion(word, names);
  const rest = instead === undefined ? near || expected : `: ${instead}`;
  return new CommandError(`unknown command ${JSON.stringify(word)} for ${JSON.stringify(path)}${rest}`);
}

/** `virtctl`, or `kubectl virt`. */
const programWords = (path: string) => (path.startsWith('kubectl ') ? 2 : 1);

function levelOf(entry: CommandEntry, path: string): Level {
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

/** Returns the first word that is neither a flag nor the value of a shared flag. */
function takeWord(argv: readonly string[], shared: FlagTable) {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (hasValueNext(word, shared)) i++;
    else if (!word.startsWith('-')) return { word, rest: argv.toSpliced(i, 1) };
  }
  return { word: undefined, rest: argv };
}

function hasValueNext(word: string, shared: FlagTable): boolean {
  return Object.values(shared).some(
    ({ name, short, value }) => value !== '' && (word === `--${name}` || (short !== undefined && word === `-${short}`)),
  );
}
