import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseUserTarget, type UserTarget } from '#cli/commands/access/target.ts';

const target = (kind: 'vm' | 'vmi', name: string, namespace?: string, username?: string): UserTarget => ({
  ...{ kind, name, namespace, username },
});

const cases: Record<string, UserTarget | string> = {
  'vmi/db': target('vmi', 'db'),
  'vm/db': target('vm', 'db'),
  'VirtualMachines/db': target('vm', 'db'),
  'virtualmachineinstance/db': target('vmi', 'db'),
  'vmi/db/shop': target('vmi', 'db', 'shop'),
  'vmi/db.shop': target('vmi', 'db', 'shop'),
  'vm/db.example.shop': target('vm', 'db.example', 'shop'),
  'vm/db.example/shop': target('vm', 'db.example', 'shop'),
  'jdoe@vmi/db': target('vmi', 'db', undefined, 'jdoe'),
  'jdoe@vm/db/shop': target('vm', 'db', 'shop', 'jdoe'),
  '': 'target cannot be empty',
  db: "target must contain type and name separated by '/'",
  'vm/': 'name cannot be empty',
  'vm/.shop': 'name cannot be empty',
  'vm/db.': 'namespace cannot be empty',
  'vm/db/': 'namespace cannot be empty',
  'vm/a/b/c': "target is not valid with more than two '/'",
  'pod/db': "unsupported resource type 'pod'",
  '@vm/db': "expected username before '@'",
  'jdoe@': "expected target after '@'",
};
for (const [text, want] of Object.entries(cases)) {
  test(`"${text}"`, () => {
    if (typeof want === 'string') assert.throws(() => parseUserTarget(text), { message: want });
    else assert.deepEqual(parseUserTarget(text), want);
  });
}
