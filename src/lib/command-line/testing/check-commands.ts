/** Checks every command of a program: the format of its help, and that its examples parse. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isCommand, type Command, type CommandEntry } from '#lib/command-line/command.ts';
import type { FlagTable } from '#lib/command-line/flag.ts';
import { commandHelp, usageLine } from '#lib/command-line/help.ts';
import { EXIT_USAGE, exitCodeOf, renderError } from '#lib/command-line/render-error.ts';
import { resolveCall, type ProgramTable } from '#lib/command-line/resolve-call.ts';
import { shellWords } from '#lib/command-line/testing/shell-words.ts';

interface NamedCommand<Context> {
  readonly path: string;
  readonly command: Command<Context>;
}

/** Returns all commands with the words that call them. */
export function namedCommands<Context>(
  entries: readonly CommandEntry<Context>[],
  above: string,
): NamedCommand<Context>[] {
  return entries.flatMap((entry) => {
    const path = `${above} ${entry.name}`;
    const own = isCommand(entry) ? [{ path, command: entry }] : [];
    return [...own, ...namedCommands(entry.commands ?? [], path)];
  });
}

/** Defines the tests. `kinds` are the kinds of objects whose names the program completes. */
export function checkCommands<Context, Shared extends FlagTable>(
  program: ProgramTable<Context, Shared>,
  kinds: Iterable<string> = [],
): void {
  const { name, commands, shared } = program;
  const known = namedCommands(commands, name);
  const completions = new Set(['file', ...kinds]);
  suite(`every command of ${name}`, () => {
    for (const { path, command } of known) {
      test(`${path} has a help that reads well`, () => {
        const { summary, example, flags, completes = [] } = command;
        assert.match(summary, /^[A-Z].*\.$/, 'a sentence');
        assert.match(example, /^ {2}# \S/, 'an example begins with its purpose');
        const help = commandHelp(path, command, shared);
        assert.match(help, new RegExp(`^Usage:\n {2}${path}.* \\[flags\\]$`, 'm'));
        assert.ok(
          help.split('\n').every((line) => line === line.trimEnd()),
          'no line ends in spaces',
        );
        for (const flag of Object.values(flags)) {
          assert.ok(flag.hidden === true || flag.help !== '', `--${flag.name} is explained`);
        }
        for (const one of [...completes, ...Object.values(flags).map((flag) => flag.completes)]) {
          if (typeof one === 'string') assert.ok(completions.has(one), `${one} can be completed`);
        }
      });

      test(`${path} shows its usage after a wrong command line`, () => {
        const usage = `Usage: ${usageLine(path, command.usage)}\nTry: ${path} --help`;
        for (const words of wrongWords(command)) {
          const argv = [...path.split(' ').slice(1), ...words];
          assert.throws(
            () => resolveCall(program, argv),
            (error) => {
              assert.equal(exitCodeOf(error), EXIT_USAGE);
              const [message, ...rest] = renderError(error).split('\n');
              assert.match(message ?? '', /^error: \S/);
              assert.equal(rest.join('\n'), usage);
              return true;
            },
            argv.join(' '),
          );
        }
      });

      test(`${path} has examples that parse`, () => {
        assert.ok(callsIn(command.example, program).includes(command), 'one of them is of the command itself');
      });
    }

    test('groups name their commands', () => {
      for (const entry of commands.filter((one) => !isCommand(one))) {
        const found = resolveCall(program, [entry.name]);
        assert.ok('text' in found);
        assert.match(found.text, new RegExp(`^Use "${name} ${entry.name} <command> --help"`, 'm'));
      }
    });
  });
}

/** Returns arguments and flags that the command does not accept: too few, too many, and an unknown flag. */
function wrongWords<Context>({ args, commands, takesAll }: Command<Context>): string[][] {
  const [least, most] = typeof args === 'number' ? [args, args] : args;
  const words = (count: number) => Array.from({ length: count }, () => 'x');
  return [
    ...(least === 0 ? [] : [words(least - 1)]),
    ...(most === Infinity ? [] : [words(most + 1)]),
    ...(takesAll === true ? [] : [['--no-such-flag', ...words(least)], ['-Q']]),
    // A command with commands of its own takes an unknown word as an argument.
  ].filter((given) => commands === undefined || given.length > 0 || least > 0);
}

/** Returns the commands that the lines of an example call. */
function callsIn<Context, Shared extends FlagTable>(
  example: string,
  program: ProgramTable<Context, Shared>,
): Command<Context>[] {
  const lines = example
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'));
  return lines.flatMap((line) => {
    const words = shellWords(line);
    const start = words.indexOf(program.name);
    if (start < 0) return [];
    // The part after a pipe belongs to another program.
    const pipe = words.indexOf('|', start);
    const found = resolveCall(program, words.slice(start + 1, pipe < 0 ? undefined : pipe));
    return 'command' in found ? [found.command] : [];
  });
}
