import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseInstanceTarget, parseUserTarget, type UserTarget } from '#cli/commands/access/target.ts';

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
  db: target('vm', 'db'),
  'jdoe@db': target('vm', 'db', undefined, 'jdoe'),
  'db.shop': target('vm', 'db', 'shop'),
  'vm/': 'name cannot be empty',
  'vm/.shop': 'name cannot be empty',
  'vm/db.': 'namespace cannot be empty',
  'vm/db/': 'namespace cannot be empty',
  'vm/a/b/c': "target is not valid with more than two '/'",
  'pod/db': "unsupported resource type 'pod'; expected vm or vmi, as in vm/NAME or vm/NAME/NAMESPACE",
  '@vm/db': "expected username before '@'",
  'jdoe@': "expected target after '@'",
};
for (const [text, want] of Object.entries(cases)) {
  test(`"${text}"`, () => {
    if (typeof want === 'string') assert.throws(() => parseUserTarget(text), { message: want });
    else assert.deepEqual(parseUserTarget(text), want);
  });
}

const instances: Record<string, [name: string, namespace?: string]> = {
  db: ['db'],
  'db.example': ['db.example'],
  'vm/db': ['db'],
  'vmi/db': ['db'],
  'vmi/db/shop': ['db', 'shop'],
  'vm/db.shop': ['db', 'shop'],
};
for (const [text, [name, namespace]] of Object.entries(instances)) {
  test(`the instance "${text}"`, () => {
    const found = parseInstanceTarget(text);
    assert.deepEqual([found.name, found.namespace], [name, namespace]);
  });
}
