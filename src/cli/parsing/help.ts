/** Help texts of virtctl. Pure. */
import { isCommand, type Command, type CommandEntry } from '#cli/parsing/command.ts';
import type { Flag, FlagTable } from '#cli/parsing/flags.ts';

/** Returns the command list of virtctl or of a group. `path` is what the user types before the next word. */
export function overview(path: string, intro: string, all: readonly CommandEntry[]): string {
  const entries = shownEntries(all);
  const width = Math.max(...entries.map(({ name }) => name.length));
  return [
    intro,
    '',
    'Available Commands:',
    ...entries.map(({ name, summary }) => `  ${name.padEnd(width)}   ${summary}`),
    '',
    `Use "${path} <command> --help" for more information about a given command.`,
    '',
  ].join('\n');
}

/** Returns the entries that are not hidden. */
export function shownEntries(entries: readonly CommandEntry[]): readonly CommandEntry[] {
  return entries.filter((entry) => !isCommand(entry) || entry.hidden !== true);
}

/** Returns the help of a command. `path` is what the user types, such as `virtctl identity duplicates`. */
export function commandHelp(program: string, path: string, command: Command, shared: FlagTable): string {
  const { usage, summary, details, example, flags } = command;
  return [
    summary,
    ...(details === undefined ? [] : ['', details]),
    '',
    'Usage:',
    `  ${[path, usage].filter((part) => part !== '').join(' ')} [flags]`,
    '',
    'Examples:',
    example.replaceAll('virtctl', program),
    '',
    ...flagLines('Flags:', flags),
    ...flagLines('Global Flags:', shared),
  ].join('\n');
}

function flagLines(title: string, flags: FlagTable): string[] {
  const shownFlags = Object.values(flags).filter(({ hidden }) => hidden !== true);
  const rows = shownFlags.map((flag) => [flagName(flag), flag.help] as const);
  if (rows.length === 0) return [];
  const width = Math.max(...rows.map(([shown]) => shown.length));
  return [title, ...rows.map(([shown, help]) => `${shown.padEnd(width)}   ${help}`), ''];
}

function flagName({ name, short, value }: Flag<unknown>): string {
  const letter = short === undefined ? '   ' : `-${short},`;
  return `  ${letter} --${name}${value === '' ? '' : ` ${value}`}`;
}
