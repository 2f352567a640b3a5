import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command, CommandEntry } from '#lib/command-line/command.ts';
import { commandTree, completeWords, completionLines } from '#lib/command-line/complete-words.ts';
import { switchFlag, textFlag } from '#lib/command-line/flag.ts';

const aCommand = (name: string, extra: Partial<Command<unknown>> = {}): Command<unknown> => ({
  ...{ name, usage: '', summary: `Does ${name}.`, example: '', flags: {}, args: 1 },
  run: async () => {},
  ...extra,
});

const commands: CommandEntry<unknown>[] = [
  aCommand('start', { flags: { paused: switchFlag({ name: 'paused', help: 'Wait.' }) }, completes: ['vm'] }),
  aCommand('pause', { completes: [['vm', 'vmi'], 'vm'] }),
  aCommand('stop', { usage: '(VM)' }),
  aCommand('__secret', { hidden: true }),
  {
    name: 'import',
    summary: 'Brings in.',
    commands: [
      aCommand('ovf', {
        completes: ['file'],
        flags: {
          format: textFlag({ name: 'format', short: 'o', help: 'Which.', completes: ['json', 'yaml'] }, 'string'),
          old: textFlag({ name: 'old', help: '', hidden: true }, 'string'),
        },
      }),
    ],
  },
];
const shared = {
  namespace: textFlag({ name: 'namespace', short: 'n', help: 'Where.', completes: 'namespace' }, 'string'),
  server: textFlag({ name: 'server', help: 'Whom.' }, 'string'),
};
const tree = commandTree({ name: 'virtctl', commands, shared }, ['vm']);

/** Words are separated by spaces. The last one is completed. */
const cases: Record<string, string> = {
  '': 'start pause stop import',
  st: 'start stop',
  'stop ': '<vm>',
  x: '',
  'start ': '<vm>',
  'start --': '--paused --namespace --server',
  'start db ': '',
  'start --paused ': '<vm>',
  'start -n lab ': '<vm>',
  'start -n ': '<namespace>',
  'start --namespace=': '<namespace --namespace=>',
  '-n lab sta': 'start',
  '--server ': '',
  '--': '--namespace --server',
  'pause ': 'vm vmi',
  'pause vm ': '<vm>',
  'import ': 'ovf',
  'import ovf ': '(files)',
  'import ovf -o ': 'json yaml',
  'import ovf --format=y': '--format=yaml',
  'import ovf --o': '',
  'help imp': 'import',
  'help import ': 'ovf',
  'start -- ': '',
};
for (const [line, want] of Object.entries(cases)) {
  test(`virtctl ${line}`, () => {
    const { candidates, files, live } = completeWords(tree, line.split(' '));
    const shown = candidates.map(({ word }) => word);
    if (files) shown.push('(files)');
    if (live !== undefined) shown.push(`<${[live.kind, live.prefix].join(' ').trim()}>`);
    assert.equal(shown.join(' '), want);
  });
}

test('renders lines like cobra', () => {
  assert.equal(completionLines(completeWords(tree, ['sta'])), 'start\tDoes start.\n:4\n');
  assert.equal(completionLines(completeWords(tree, ['import', 'ovf', ''])), ':0\n');
});
