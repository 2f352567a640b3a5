import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIVE_KINDS } from '#cli/commands/completion/live-names.ts';
import { virtctlTable } from '#cli/run.ts';
import { UNSUPPORTED_COMMANDS } from '#cli/unsupported-commands.ts';
import { checkCommands, namedCommands } from '#lib/command-line/testing/check-commands.ts';

checkCommands(virtctlTable, LIVE_KINDS.keys());

test('unsupported commands have a reason and do not exist', () => {
  const known = namedCommands(virtctlTable.commands, '').map(({ path }) => path.trim());
  assert.ok(known.length > 25, 'the commands are found');
  for (const [path, why] of UNSUPPORTED_COMMANDS) {
    assert.ok(!known.includes(path), path);
    assert.match(why, /^\S.{10,}[^.]$/, path);
  }
});
