/** docs/virtctl.md names every command that there is, and no other. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isCommand, type CommandEntry } from '#cli/command.ts';
import { NOT_HERE } from '#cli/not-here.ts';
import { commands } from '#cli/run.ts';

const page = readFileSync(new URL('../../docs/virtctl.md', import.meta.url), 'utf8');
/** Rows of the table below a title, by their first cell. */
function rowsBelow(title: string): Map<string, string[]> {
  const section = page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
  const cells = [...section.matchAll(/^\| `([^`]+)` \|(.*)\|$/gm)];
  return new Map(cells.map(([, name = '', rest = '']) => [name, rest.split(' | ').map((cell) => cell.trim())]));
}

function summaries(entries: readonly CommandEntry[], above: string): [name: string, summary: string][] {
  return entries.flatMap((entry) => {
    const path = `${above} ${entry.name}`.trim();
    const isShown = isCommand(entry) && entry.hidden !== true;
    return [...(isShown ? [[path, entry.summary] as [string, string]] : []), ...summaries(entry.commands ?? [], path)];
  });
}

test('every command has its row, with its summary and where it comes from', () => {
  const known = summaries(commands, '');
  assert.ok(known.length > 25);
  const rows = rowsBelow('Commands');
  assert.deepEqual(Object.fromEntries([...rows].map(([name, [, what]]) => [name, what])), Object.fromEntries(known));
  for (const [name, [from = '']] of rows) assert.match(from, /^(?:KubeVirt|ours)$/, name);
});

test('what KubeVirt has besides is what the program says about it', () => {
  const rows = [...rowsBelow('What KubeVirt has besides')].map(([name, [why]]) => [name, why]);
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(NOT_HERE));
});
