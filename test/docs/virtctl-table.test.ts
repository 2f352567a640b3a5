/** Checks that docs/virtctl.md lists exactly the existing commands. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isCommand } from '#lib/command-line/command.ts';
import type { VirtctlEntry } from '#cli/command.ts';
import { UNSUPPORTED_COMMANDS } from '#cli/unsupported-commands.ts';
import { commands } from '#cli/commands/all-commands.ts';

const page = readFileSync(new URL('../../docs/virtctl.md', import.meta.url), 'utf8');
/** Returns the rows of the table below a title, by their first cell. */
function rowsBelow(title: string): Map<string, string[]> {
  const section = page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
  const cells = [...section.matchAll(/^\| `([^`]+)` \|(.*)\|$/gm)];
  return new Map(cells.map(([, name = '', rest = '']) => [name, rest.split(' | ').map((cell) => cell.trim())]));
}

function summaries(entries: readonly VirtctlEntry[], above: string): [name: string, summary: string][] {
  return entries.flatMap((entry) => {
    const path = `${above} ${entry.name}`.trim();
    const isShown = isCommand(entry) && entry.hidden !== true;
    return [...(isShown ? [[path, entry.summary] as [string, string]] : []), ...summaries(entry.commands ?? [], path)];
  });
}

test('every command has a row with its summary and origin', () => {
  const known = summaries(commands, '');
  assert.ok(known.length > 25);
  const rows = rowsBelow('Commands');
  assert.deepEqual(Object.fromEntries([...rows].map(([name, [, what]]) => [name, what])), Object.fromEntries(known));
  for (const [name, [from = '']] of rows) assert.match(from, /^(?:KubeVirt|ours)$/, name);
});

test('the table of unsupported KubeVirt commands matches the messages of the program', () => {
  const rows = [...rowsBelow('KubeVirt commands that are not supported')].map(([name, [why]]) => [name, why]);
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(UNSUPPORTED_COMMANDS));
});
