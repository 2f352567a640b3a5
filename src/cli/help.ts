/** What virtctl says about itself. Pure. */
import type { Command } from '#cli/command.ts';
import type { Flag, FlagTable } from '#cli/flags.ts';

export function overview(program: string, commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    `${program} controls virtual machine related operations on your kubernetes cluster.`,
    '',
    'Available Commands:',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}   ${summary}`),
    '',
    `Use "${program} <command> --help" for more information about a given command.`,
    '',
  ].join('\n');
}

export function commandHelp(program: string, command: Command, shared: FlagTable): string {
  const { name, usage, summary, example, flags } = command;
  return [
    summary,
    '',
    'Usage:',
    `  ${[program, name, usage].filter((part) => part !== '').join(' ')} [flags]`,
    '',
    'Examples:',
    example.replaceAll('virtctl', program),
    '',
    ...flagLines('Flags:', flags),
    ...flagLines('Global Flags:', shared),
  ].join('\n');
}

function flagLines(title: string, flags: FlagTable): string[] {
  const rows = Object.values(flags).map((flag) => [flagName(flag), flag.help] as const);
  if (rows.length === 0) return [];
  const width = Math.max(...rows.map(([shown]) => shown.length));
  return [title, ...rows.map(([shown, help]) => `${shown.padEnd(width)}   ${help}`), ''];
}

function flagName({ name, short, value }: Flag<unknown>): string {
  const letter = short === undefined ? '   ' : `-${short},`;
  return `  ${letter} --${name}${value === '' ? '' : ` ${value}`}`;
}
