/** Help texts of both programs, in the layout of cobra. Pure. */
import { shownEntries, type Command, type CommandEntry } from '#lib/command-line/command.ts';
import type { Flag, FlagTable } from '#lib/command-line/flag.ts';
import { alignedTable } from '#lib/terminal/table.ts';

/** Returns the command list of a program or of a group. `path` is what the user types before the next word. */
export function overview<Context>(path: string, intro: string, entries: readonly CommandEntry<Context>[]): string {
  return [
    intro,
    '',
    'Available Commands:',
    commandRows(entries),
    '',
    `Use "${path} <command> --help" for more information about a given command.`,
    '',
  ].join('\n');
}

const commandRows = <Context>(entries: readonly CommandEntry<Context>[]) =>
  alignedTable(
    shownEntries(entries).map(({ name, summary }) => [name, summary]),
    { indent: '  ' },
  );

/** Returns the help of a command. `path` is what the user types, such as `virtctl identity duplicates`. */
export function commandHelp<Context>(path: string, command: Command<Context>, shared: FlagTable): string {
  const { usage, summary, details, example, flags, commands = [] } = command;
  const sections = [
    [summary],
    details === undefined ? [] : [details],
    commands.length === 0 ? [] : ['Available Commands:', commandRows(commands)],
    ['Usage:', `  ${usageLine(path, usage)}`],
    ['Examples:', example],
    flagRows('Flags:', flags),
    flagRows('Global Flags:', shared),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

/** Returns how a command is called: `virtctl start (VM) [flags]`. */
export function usageLine(path: string, usage: string): string {
  return [path, usage, '[flags]'].filter((part) => part !== '').join(' ');
}

function flagRows(title: string, flags: FlagTable): string[] {
  const shown = Object.values(flags).filter(({ hidden }) => hidden !== true);
  if (shown.length === 0) return [];
  const rows = shown.flatMap((flag) => {
    const source = sourceText(flag);
    return [[flagName(flag), flag.help], ...(source === '' ? [] : [['', `(${source})`]])];
  });
  return [title, alignedTable(rows, { indent: '  ' })];
}

function flagName({ name, short, value }: Flag<unknown>): string {
  return `${short === undefined ? '   ' : `-${short},`} --${name} ${value}`.trimEnd();
}

/** Returns the default of a flag and the variable that sets it. */
function sourceText({ required, defaultText, variable }: Flag<unknown>): string {
  return [
    ...(required === true ? ['required'] : []),
    ...(defaultText === undefined ? [] : [`default ${defaultText}`]),
    ...(variable === undefined ? [] : [`also ${variable}`]),
  ].join('; ');
}
