import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command, CommandEntry } from '#lib/command-line/command.ts';
import { requiredFlag, switchFlag, textFlag } from '#lib/command-line/flag.ts';
import { renderError } from '#lib/command-line/render-error.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { resolveCall, runCall } from '#lib/command-line/resolve-call.ts';

const aCommand = (name: string, more: Partial<Command<unknown>> = {}): Command<unknown> => ({
  ...{ name, usage: '', summary: `Does ${name}.`, example: `  # Do it:\n  virtctl ${name}`, flags: {} },
  args: [0, Infinity],
  run: async () => {},
  ...more,
});
const commands: CommandEntry<unknown>[] = [
  aCommand('start', { flags: { now: switchFlag({ name: 'now', help: 'Start now.' }) }, args: [0, 1] }),
  aCommand('adopt', { flags: { claim: requiredFlag({ name: 'claim', help: '' }, 'string') } }),
  aCommand('host', { interspersed: false }),
  aCommand('__complete', { hidden: true, takesAll: true }),
  {
    name: 'identity',
    summary: 'Looks at identities.',
    commands: [
      aCommand('diff', { flags: { output: textFlag({ name: 'output', short: 'o', help: '' }, 'string') } }),
      aCommand('duplicates'),
    ],
  },
  {
    name: 'update',
    summary: 'Changes many.',
    commands: [
      aCommand('types', {
        flags: { glob: textFlag({ name: 'glob', help: '' }, 'string') },
        commands: [aCommand('list')],
      }),
    ],
  },
];
const shared = {
  namespace: textFlag({ name: 'namespace', short: 'n', help: '' }, 'string'),
  help: switchFlag({ name: 'help', short: 'h', help: '' }),
};
const unsupported = new Map([
  ['vmexport', 'use virtctl export'],
  ['identity clone', 'copy it'],
]);
const program = { name: 'virtctl', intro: 'controls machines.', commands, shared, unsupported };
const resolve = (line: string, calledAs = 'virtctl') =>
  resolveCall(
    { ...program, calledAs },
    line.split(' ').filter((word) => word !== ''),
  );

/** Expected: the last word of the command, its arguments, and the flags that are not at their default. */
const found: Record<string, string> = {
  'start db': 'start db',
  'start -- --now': 'start --now',
  '-n start start --now db': 'start db {"now":true,"namespace":"start"}',
  'identity diff -o json': 'diff {"output":"json"}',
  '-n a identity --namespace=b duplicates': 'duplicates {"namespace":"b"}',
  'identity -n diff duplicates': 'duplicates {"namespace":"diff"}',
  'identity duplicates identity': 'duplicates identity',
  'adopt --claim c': 'adopt {"claim":"c"}',
  'host -n a list --help -n b': 'host list --help -n b {"namespace":"a"}',
  '__complete start --': '__complete start --',
  'update types *8.*': 'types *8.*',
  'update types': 'types',
  'update types list job': 'list job',
  'update types --glob list': 'types {"glob":"list"}',
  'update types -n list --glob=x': 'types {"glob":"x","namespace":"list"}',
};
for (const [line, want] of Object.entries(found)) {
  test(`finds: ${line}`, () => {
    const call = resolve(line);
    assert.ok('command' in call);
    const given = Object.entries(call.flags).filter(([, value]) => value !== undefined && value !== false);
    const flags = given.length === 0 ? [] : [JSON.stringify(Object.fromEntries(given))];
    assert.equal([call.command.name, ...call.args, ...flags].join(' '), want);
  });
}

const HELP = `Does start.

Usage:
  virtctl start [flags]

Examples:
  # Do it:
  virtctl start

Flags:
      --now   Start now.

Global Flags:
  -n, --namespace string
  -h, --help
`;
for (const line of ['help start', 'start --help', 'start db -h', 'start --nope --help', 'start -n --help -x -h']) {
  test(`shows the help: ${line}`, () => assert.deepEqual(resolve(line), { text: HELP }));
}

test('the help has the name under which the user called the program', () => {
  assert.deepEqual(resolve('help start', 'kubectl virt'), { text: HELP.replaceAll('virtctl', 'kubectl virt') });
});

test('the help of a command lists its subcommands', () => {
  const call = resolve('help update types');
  assert.ok('text' in call);
  assert.match(call.text, /^Does types\.\n\nAvailable Commands:\n {2}list {3}Does list\.\n\nUsage:\n/);
});

const GROUP = `Looks at identities.

Available Commands:
  diff         Does diff.
  duplicates   Does duplicates.

Use "virtctl identity <command> --help" for more information about a given command.
`;
for (const line of ['identity', 'identity --help', '-n x identity', 'help identity']) {
  test(`shows the group: ${line}`, () => assert.deepEqual(resolve(line), { text: GROUP }));
}
for (const line of ['', '--help', 'help', 'help help', '-n identity']) {
  test(`shows the overview: ${line}`, () => {
    const call = resolve(line);
    assert.ok('text' in call);
    assert.match(call.text, /^virtctl controls machines\.\n\n.*\n {2}start {6}Does start\.\n {2}adopt {6}Does adopt\./);
    assert.doesNotMatch(call.text, /__complete/);
  });
}

const refused: Record<string, string> = {
  strat: 'unknown command "strat" for "virtctl"; did you mean "start"?',
  'identity dif': 'unknown command "dif" for "virtctl identity"; did you mean "diff"?',
  'help identity dupplicates': 'unknown command "dupplicates" for "virtctl identity"; did you mean "duplicates"?',
  vmexport: 'unknown command "vmexport" for "virtctl": use virtctl export',
  'identity clone': 'unknown command "clone" for "virtctl identity": copy it',
  explode: 'unknown command "explode" for "virtctl"',
  constructor: 'unknown command "constructor" for "virtctl"',
  duplicates: 'unknown command "duplicates" for "virtctl"',
  'identity explode': 'unknown command "explode" for "virtctl identity"; expected diff or duplicates',
  'help identity explode': 'unknown command "explode" for "virtctl identity"; expected diff or duplicates',
  'identity --now': 'unknown flag: --now',
  '--now': 'unknown flag: --now',
  '--namespce=x': 'unknown flag: --namespce; did you mean --namespace?',
  'start a b': 'accepts between 0 and 1 arg(s), received 2',
  'start -- --help --nope': 'accepts between 0 and 1 arg(s), received 2',
  adopt: 'required flag(s) "claim" not set',
  'adopt --claim=': 'required flag(s) "claim" not set',
};
for (const [line, message] of Object.entries(refused)) {
  test(`refuses: ${line}`, () => assert.throws(() => resolve(line), { name: 'UsageError', message }));
}

const usages: Record<string, string> = {
  'start a b': 'Usage: virtctl start [flags]\nTry: virtctl start --help',
  'identity diff --nope': 'Usage: virtctl identity diff [flags]\nTry: virtctl identity diff --help',
  'identity explode': 'Usage: virtctl identity COMMAND [flags]\nTry: virtctl identity --help',
  'identity --now': 'Usage: virtctl identity COMMAND [flags]\nTry: virtctl identity --help',
  strat: 'Usage: virtctl COMMAND [flags]\nTry: virtctl --help',
  '--now': 'Usage: virtctl COMMAND [flags]\nTry: virtctl --help',
};
for (const [line, want] of Object.entries(usages)) {
  test(`shows the usage after: ${line}`, () => {
    assert.throws(
      () => resolve(line),
      (error) => renderError(error).split('\n').slice(1).join('\n') === want,
    );
    assert.throws(
      () => resolve(line, 'kubectl virt'),
      (error) => renderError(error).includes('\nUsage: kubectl virt'),
    );
  });
}

test('adds the usage to a command line that a command refuses when it runs', async () => {
  const run = async () => {
    throw new UsageError('--a needs --b');
  };
  const call = resolve('start db');
  assert.ok('command' in call);
  await assert.rejects(runCall({ ...call, command: { ...call.command, run } }, {}), (error) => {
    assert.equal(renderError(error), 'error: --a needs --b\nUsage: virtctl start [flags]\nTry: virtctl start --help');
    return true;
  });
});
