import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineCommand, type CommandEntry } from '#cli/parsing/command.ts';
import { findCommand } from '#cli/parsing/find-command.ts';
import { switchFlag, textFlag } from '#cli/parsing/flags.ts';

const aCommand = (name: string) =>
  defineCommand({ name, usage: '', summary: `Does ${name}.`, example: '', flags: {}, args: 0, run: async () => {} });
const entries: CommandEntry[] = [
  aCommand('start'),
  { name: 'identity', summary: 'Looks at identities.', commands: [aCommand('diff'), aCommand('duplicates')] },
  {
    name: 'update',
    summary: 'Changes many.',
    commands: [
      {
        ...aCommand('types'),
        flags: { glob: textFlag({ name: 'glob', help: '' }, 'string') },
        commands: [aCommand('list')],
      },
    ],
  },
];
const shared = {
  namespace: textFlag({ name: 'namespace', short: 'n', help: '' }, 'string'),
  help: switchFlag({ name: 'help', short: 'h', help: '' }),
};
const find = (line: string) =>
  findCommand(entries, shared, { argv: line.split(' ').filter((word) => word !== ''), program: 'virtctl' });

const found: Record<string, string> = {
  'start db': 'virtctl start: db',
  '-n start start --now db': 'virtctl start: -n start --now db',
  'identity duplicates -o json': 'virtctl identity duplicates: -o json',
  '-n a identity --namespace=b duplicates': 'virtctl identity duplicates: -n a --namespace=b',
  'identity -n diff duplicates': 'virtctl identity duplicates: -n diff',
  'identity duplicates identity': 'virtctl identity duplicates: identity',
  'identity --help duplicates': 'virtctl identity duplicates: --help',
  'help start': 'virtctl start: --help',
  'help identity duplicates': 'virtctl identity duplicates: --help',
  'update types *8.*': 'virtctl update types: *8.*',
  'update types': 'virtctl update types: ',
  'update types list job': 'virtctl update types list: job',
  'update types --glob list': 'virtctl update types: --glob list',
  'update types -n list --glob=x': 'virtctl update types: -n list --glob=x',
  'help update types': 'virtctl update types: --help',
};
for (const [line, want] of Object.entries(found)) {
  test(`finds: ${line}`, () => {
    const one = find(line);
    assert.ok('command' in one);
    assert.equal(`${one.path}: ${one.rest.join(' ')}`, want);
    assert.equal(one.path.split(' ').at(-1), one.command.name);
  });
}

const GROUP = `Looks at identities.

Available Commands:
  diff         Does diff.
  duplicates   Does duplicates.

Use "virtctl identity <command> --help" for more information about a given command.
`;
for (const line of ['identity', 'identity --help', '-n x identity', 'help identity']) {
  test(`shows the group: ${line}`, () => assert.deepEqual(find(line), { overview: GROUP }));
}
for (const line of ['', '--help', 'help', '-n identity']) {
  test(`shows what there is: ${line}`, () => {
    const one = find(line);
    assert.ok('overview' in one);
    assert.match(one.overview, /^virtctl controls .*\n\n.*\n {2}start {6}Does start\.\n {2}identity {3}Looks at /);
  });
}

const refused: Record<string, string> = {
  strat: 'unknown command "strat" for "virtctl"; did you mean "start"?',
  'identity dif': 'unknown command "dif" for "virtctl identity"; did you mean "diff"?',
  'help identity dupplicates': 'unknown command "dupplicates" for "virtctl identity"; did you mean "duplicates"?',
  vmexport: 'unknown command "vmexport" for "virtctl": use virtctl export ovf, or virtctl export libvirt',
  explode: 'unknown command "explode" for "virtctl"',
  duplicates: 'unknown command "duplicates" for "virtctl"',
  'identity explode': 'unknown command "explode" for "virtctl identity"; expected diff or duplicates',
  'help identity explode': 'unknown command "explode" for "virtctl identity"; expected diff or duplicates',
  'identity --now': 'unknown flag: --now',
  '--now': 'unknown flag: --now',
  '--namespce=x': 'unknown flag: --namespce; did you mean --namespace?',
};
for (const [line, message] of Object.entries(refused)) {
  test(`refuses: ${line}`, () => assert.throws(() => find(line), { name: 'CommandError', message }));
}
