/** Checks every command of virtctl and selfsame: the format of its help, and that its examples parse. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { findArgCountError, isCommand, type Command, type CommandEntry } from '#cli/parsing/command.ts';
import { findCommand } from '#cli/parsing/find-command.ts';
import { parseArgs } from '#cli/parsing/flags.ts';
import { commandHelp } from '#cli/parsing/help.ts';
import { UNSUPPORTED_COMMANDS } from '#cli/unsupported-commands.ts';
import { commands, sharedFlags } from '#cli/run.ts';
import { shellWords } from '#cli/testing/shell-words.ts';

interface Named {
  readonly path: string;
  readonly command: Command;
}

function all(entries: readonly CommandEntry[], above: string): Named[] {
  return entries.flatMap((entry) => {
    const path = `${above} ${entry.name}`;
    const own = isCommand(entry) ? [{ path, command: entry }] : [];
    return [...own, ...all(entry.commands ?? [], path)];
  });
}

const known = all(commands, 'virtctl');
assert.ok(known.length > 25, 'the commands are found');

suite('every command of virtctl', () => {
  for (const { path, command } of known) {
    test(`${path} has a help that reads well`, () => {
      const { summary, example, flags } = command;
      assert.match(summary, /^[A-Z].*\.$/, 'a sentence');
      assert.match(example, /^ {2}# \S/, 'an example begins with its purpose');
      const help = commandHelp('virtctl', path, command, sharedFlags);
      assert.match(help, /^Usage:\n {2}virtctl .+ \[flags\]$/m);
      assert.ok(
        help.split('\n').every((line) => line === line.trimEnd()),
        'no line ends in spaces',
      );
      for (const { name, help: about, hidden } of Object.values(flags)) {
        assert.ok(hidden === true || about !== '', `--${name} is explained`);
      }
    });

    test(`${path} has examples that parse`, () => {
      const calls = callsIn(command.example, 'virtctl');
      assert.ok(
        calls.some(({ found }) => found === command),
        'one of them is of the command itself',
      );
    });
  }

  test('unsupported commands have a reason and do not exist', () => {
    const here = new Set(known.map(({ path }) => path.replace('virtctl ', '')));
    for (const [path, why] of UNSUPPORTED_COMMANDS) {
      assert.ok(!here.has(path), path);
      assert.match(why, /^\S.{10,}[^.]$/, path);
    }
  });

  test('groups name their commands', () => {
    for (const entry of commands.filter((one) => !isCommand(one))) {
      const found = findCommand(commands, sharedFlags, { argv: [entry.name], program: 'virtctl' });
      assert.ok('overview' in found);
      assert.match(found.overview, new RegExp(`^Use "virtctl ${entry.name} <command> --help"`, 'm'));
    }
  });
});

/** Returns the lines of an example that call the program, split into words. */
function callsIn(example: string, program: string): { readonly found: Command }[] {
  const lines = example
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'));
  return lines.flatMap((line) => {
    const words = shellWords(line);
    const start = words.indexOf(program);
    // The part after a pipe belongs to another program.
    const pipe = words.indexOf('|', start);
    if (start < 0) return [];
    const argv = words.slice(start + 1, pipe < 0 ? undefined : pipe);
    const found = findCommand(commands, sharedFlags, { argv, program });
    assert.ok('command' in found, line);
    const { args } = parseArgs({ ...found.command.flags, ...sharedFlags }, found.rest);
    assert.equal(findArgCountError(found.command.args, args.length), undefined, line);
    return [{ found: found.command }];
  });
}
